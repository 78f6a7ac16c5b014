import { LEASE_RENEWAL_MS, type Lease, renewLease } from '../../store/import-leases.ts';
import type { ImportContext } from './context.ts';

/** Renews a lease, from its claim until it is disposed of. */
export class LeaseRenewal implements Disposable {
  readonly #context: ImportContext;
  readonly #lease: Lease;
  readonly #lost = new AbortController();
  #cancelTimer = () => {};
  #isDisposed = false;

  constructor(context: ImportContext, lease: Lease) {
    this.#context = context;
    this.#lease = lease;
    this.#schedule();
  }

  /** Aborts when another worker may have the import. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#cancelTimer();
  }

  #schedule(): void {
    if (this.#isDisposed) return;
    this.#cancelTimer = this.#context.coordination.clock.after(LEASE_RENEWAL_MS, () => void this.#renew());
  }

  /** Of the other pool: the imports' own connections may all be busy for long. */
  async #renew(): Promise<void> {
    // While the database cannot be reached, nobody else can claim the import either, until its lease ends.
    const isHeld = await renewLease(this.#context.database, this.#lease).catch(() => true);
    if (isHeld) this.#schedule();
    else this.#lost.abort();
  }
}

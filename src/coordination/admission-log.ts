/**
 * The times of one key's admitted requests, oldest first, in whole milliseconds. Removing a time moves a head index;
 * once half of the array is removed, the array is copied.
 */
export class AdmissionLog {
  #times: number[] = [];
  #head = 0;
  /** The limit that the newest request was counted against; 0 before the first request. */
  limit = 0;
  /** Until this time the key is known to have no free slot under that limit; 0 if that is unknown. */
  fullUntil = 0;

  get size(): number {
    return this.#times.length - this.#head;
  }

  get oldest(): number | undefined {
    return this.#times[this.#head];
  }

  get newest(): number | undefined {
    return this.size === 0 ? undefined : this.#times[this.#times.length - 1];
  }

  /** The nth newest time, from 1; undefined if there are fewer. */
  fromNewest(n: number): number | undefined {
    return n > this.size ? undefined : this.#times[this.#times.length - n];
  }

  /** Removes the times up to and including `edge`. Returns how many it removed. */
  dropUntil(edge: number): number {
    const before = this.#head;
    while (this.#head < this.#times.length && this.#times[this.#head]! <= edge) this.#head += 1;
    const dropped = this.#head - before;
    if (this.#head * 2 >= this.#times.length) this.#compact();
    return dropped;
  }

  /** Adds a time at its sorted position, because replies to concurrent calls arrive out of order. */
  add(time: number): void {
    this.#times.push(time);
    for (let i = this.#times.length - 1; i > this.#head && this.#times[i - 1]! > time; i -= 1) {
      this.#times[i] = this.#times[i - 1]!;
      this.#times[i - 1] = time;
    }
  }

  #compact(): void {
    if (this.#head === 0) return;
    this.#times = this.#times.slice(this.#head);
    this.#head = 0;
  }
}

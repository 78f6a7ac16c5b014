import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteList } from '../src/concurrency/byte-list.ts';

test('bytes come out as they came in, whatever the parts', () => {
  const part = fc.oneof(
    fc.uint8Array({ maxLength: 20 }),
    fc.uint8Array({ minLength: 1_000, maxLength: 9_000 }),
  );
  const step = fc.oneof({ weight: 9, arbitrary: part }, fc.constant('take' as const));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const list = new ByteList();
      const given: Uint8Array[] = [];
      const taken: Buffer[] = [];
      for (const each of steps) {
        if (each === 'take') taken.push(list.take());
        else {
          list.add(Buffer.from(each));
          given.push(each);
        }
      }
      const rest = list.length;
      taken.push(list.concat());
      expect(taken.at(-1)!.length).toBe(rest);
      expect(Buffer.concat(taken).equals(Buffer.concat(given))).toBe(true);
      expect(list.length).toBe(rest);
    }),
    { numRuns: 300 },
  );
});

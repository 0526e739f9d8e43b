/** A source of chance: each call gives the next number in [0, 1). */
export type Random = () => number

/**
 * Repeatable chance from a seed (any number; its 32 low bits count). Same seed, same numbers, on every machine.
 * The generator is Mulberry32, good for sampling and jitter, not for secrets.
 */
export function seededRandom(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

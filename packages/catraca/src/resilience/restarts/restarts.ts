/** One that worked for so long is started again at once. */
const steadyMs = 30_000
const firstMs = 1_000
const longestMs = 30_000

/**
 * How long to wait before a process that ended is started again: not at all at first, then 1 s, 2 s, 4 s, at most 30 s,
 * until one has worked for 30 s. Time and memory: constant.
 */
export class Restarts {
  private failures = 0

  /** Milliseconds until the next start of a process that ended after `livedMs` of work. */
  nextMs(livedMs: number): number {
    if (livedMs >= steadyMs) this.failures = 0
    const waitMs = this.failures === 0 ? 0 : Math.min(longestMs, firstMs * 2 ** (this.failures - 1))
    this.failures++
    return waitMs
  }
}

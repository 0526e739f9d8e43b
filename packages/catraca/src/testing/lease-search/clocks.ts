/** A clock that never goes back, with an offset and a rate of its own. Whole µs. */
export class MonotonicClock {
  private readonly startUs: number
  private readonly offsetUs: number
  private readonly ppm: number

  /** @param ppm Microseconds per second by which it is fast (positive) or slow (negative). */
  constructor(startUs: number, offsetUs: number, ppm: number) {
    this.startUs = startUs
    this.offsetUs = offsetUs
    this.ppm = ppm
  }

  readUs(trueUs: number): number {
    const since = trueUs - this.startUs
    return this.offsetUs + since + Math.floor((since * this.ppm) / 1_000_000)
  }
}

/** A clock that is set now and then, to an earlier or a later time. */
export class WallClock {
  private offsetUs = 0

  step(us: number): void {
    this.offsetUs += us
  }

  readUs(trueUs: number): number {
    return trueUs + this.offsetUs
  }
}

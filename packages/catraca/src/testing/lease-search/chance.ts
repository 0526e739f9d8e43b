import { type Random, seededRandom } from '../../core/random.ts'

/** Draws of one run; the same seed gives the same run. */
export class Chance {
  private readonly random: Random

  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  /** A number in [0, 1). */
  share(): number {
    return this.random()
  }

  /** True in so many of all cases, 0 to 1. */
  passes(share: number): boolean {
    return this.random() < share
  }

  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1))
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.between(0, choices.length - 1)] as T
  }
}

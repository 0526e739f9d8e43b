import type { Rate } from './bucket.ts'
import { Fraction, lesser, whole } from './fraction.ts'

/** One charge and the part of it that the refill has not paid yet. */
export interface Owed {
  left: Fraction
}

/**
 * A bucket as the list of its charges: the refill pays them first in, first out. Of a charge only what is not paid yet
 * can be given back, so that afterwards all is as if the charge had been smaller from the start.
 */
export class Charges {
  private readonly rate: Fraction
  private readonly owed: Owed[] = []
  private at = 0n

  constructor({ limit, windowUs }: Pick<Rate, 'limit' | 'windowUs'>) {
    this.rate = new Fraction(limit, windowUs)
  }

  charge(at: bigint, units: number): Owed {
    this.pay(at)
    const owed = { left: whole(BigInt(units)) }
    this.owed.push(owed)
    return owed
  }

  /** How much of `units` comes back. */
  refund(at: bigint, owed: Owed, units: number): Fraction {
    this.pay(at)
    const given = lesser(owed.left, whole(BigInt(units)))
    owed.left = owed.left.minus(given).reduced()
    return given
  }

  private pay(at: bigint): void {
    let paid = new Fraction(at - this.at).times(this.rate)
    this.at = at
    while (this.owed[0] !== undefined && paid.compare(whole(0n)) > 0n) {
      const first = this.owed[0]
      const part = lesser(first.left, paid)
      first.left = first.left.minus(part).reduced()
      paid = paid.minus(part).reduced()
      if (first.left.numerator === 0n) this.owed.shift()
    }
  }
}

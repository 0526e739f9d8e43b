/** An exact fraction; the denominator is positive. */
export class Fraction {
  readonly numerator: bigint
  readonly denominator: bigint

  constructor(numerator: bigint, denominator = 1n) {
    if (denominator <= 0n) throw new RangeError('a denominator is positive')
    this.numerator = numerator
    this.denominator = denominator
  }

  plus(other: Fraction): Fraction {
    if (this.denominator === other.denominator) return new Fraction(this.numerator + other.numerator, this.denominator)
    return new Fraction(
      this.numerator * other.denominator + other.numerator * this.denominator,
      this.denominator * other.denominator,
    )
  }

  minus(other: Fraction): Fraction {
    return this.plus(new Fraction(-other.numerator, other.denominator))
  }

  times(other: Fraction): Fraction {
    return new Fraction(this.numerator * other.numerator, this.denominator * other.denominator)
  }

  /** Negative, zero or positive as this is less than, equal to or more than `other`. */
  compare(other: Fraction): bigint {
    return this.numerator * other.denominator - other.numerator * this.denominator
  }

  floor(): bigint {
    const quotient = this.numerator / this.denominator
    return this.numerator % this.denominator < 0n ? quotient - 1n : quotient
  }

  ceil(): bigint {
    return -new Fraction(-this.numerator, this.denominator).floor()
  }

  reduced(): Fraction {
    let a = this.numerator < 0n ? -this.numerator : this.numerator
    let b = this.denominator
    while (b !== 0n) [a, b] = [b, a % b]
    return new Fraction(this.numerator / a, this.denominator / a)
  }
}

export const whole = (value: bigint): Fraction => new Fraction(value)

export function lesser(a: Fraction, b: Fraction): Fraction {
  return a.compare(b) <= 0n ? a : b
}

export function greater(a: Fraction, b: Fraction): Fraction {
  return a.compare(b) >= 0n ? a : b
}

/** Largest whole number up to which all of double arithmetic is exact. */
export const maxExact = 2 ** 53

/** Quotient rounded up. Exact for whole numbers `0 <= x`, `1 <= y`, `x + y <= 2^53`; the quotient alone may be off by one. */
export function ceilDiv(x: number, y: number): number {
  const quotient = Math.floor(x / y)
  if (quotient * y < x) return quotient + 1
  return (quotient - 1) * y >= x ? quotient - 1 : quotient
}

/** Quotient rounded down. Exact under the conditions of {@link ceilDiv}. */
export function floorDiv(x: number, y: number): number {
  const quotient = Math.floor(x / y)
  if (quotient * y > x) return quotient - 1
  return (quotient + 1) * y <= x ? quotient + 1 : quotient
}

export function greatestCommonDivisor(a: number, b: number): number {
  let [x, y] = [a, b]
  while (y !== 0) [x, y] = [y, x % y]
  return x
}

/**
 * A whole number counted in `from` parts as one counted in `to` parts, rounded up. Past 2^53 by 2^-50 of it: a bucket that
 * drains it does so in a product and a difference, each rounded by at most 2^-53 of it.
 */
export function scaleUp(count: number, from: number, to: number): number {
  if (from === to || count === 0) return count
  const product = count * to
  if (product + from <= maxExact) return ceilDiv(product, from)
  const exact = (BigInt(count) * BigInt(to) + BigInt(from) - 1n) / BigInt(from)
  return exact <= maxExact ? Number(exact) : Number(exact) * (1 + 2 ** -50)
}

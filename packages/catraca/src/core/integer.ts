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

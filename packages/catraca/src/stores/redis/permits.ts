/** 21 bits that tell this process from others, so that two never give one id: with the instant of the permit, by chance 2^-21 in a µs. */
const mine = Math.floor(Math.random() * 2 ** 21) * 2 ** 32
let last = 0

/** An id for an admission, below 2^53. */
export function nextPermit(): number {
  last = (last + 1) % 2 ** 32
  return mine + last
}

import { CatracaError, show } from './errors.ts'

/** The units of a request. Throws `CATRACA_COST_INVALID` for anything but a positive safe integer. */
export function checkCost(cost: unknown): number {
  if (Number.isSafeInteger(cost) && (cost as number) > 0) return cost as number
  const message = `cost is ${show(cost)}; allowed: a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`
  throw new CatracaError('CATRACA_COST_INVALID', message, { path: 'cost', value: cost })
}

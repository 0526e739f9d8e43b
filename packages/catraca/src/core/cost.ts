import { CatracaError, show } from './errors.ts'

/** The units of a request. Throws `CATRACA_COST_INVALID` for anything but a positive safe integer. */
export function checkCost(cost: unknown, path = 'cost'): number {
  return checkUnits(cost, 1, path)
}

/** What a request really cost: as {@link checkCost}, and 0 for one that cost nothing. */
export function checkActualCost(cost: unknown): number {
  return checkUnits(cost, 0, 'actualCost')
}

function checkUnits(cost: unknown, least: number, path: string): number {
  if (Number.isSafeInteger(cost) && (cost as number) >= least) return cost as number
  const message = `${path} is ${show(cost)}; allowed: a whole number from ${least} to ${Number.MAX_SAFE_INTEGER}`
  throw new CatracaError('CATRACA_COST_INVALID', message, { path, value: cost })
}

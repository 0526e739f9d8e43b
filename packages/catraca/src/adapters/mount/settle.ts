import { CatracaError, show } from '../../core/errors.ts'
import type { Gate, Pass } from './gate.ts'

/** Asks what an answered request really cost and tells the gate. Never throws: nobody is left to answer to. */
export function settleUp<Q, S>(gate: Gate<Q, S>, pass: Pass, request: Q, response: S): void {
  try {
    const units: unknown = gate.settles?.(request, response)
    if (units !== undefined) gate.settle(pass, checkUnits(units))
  } catch (error) {
    warn(error)
  }
}

function checkUnits(units: unknown): number {
  if (Number.isSafeInteger(units) && (units as number) >= 0) return units as number
  const message = `settle gave ${show(units)}; allowed: a whole number from 0, or undefined`
  throw new CatracaError('CATRACA_COST_INVALID', message, { path: 'settle', value: units })
}

/** As a warning of the process where there is one: an error that nobody catches would end it. */
function warn(error: unknown): void {
  const { process, console } = globalThis as unknown as {
    process?: { emitWarning?(warning: Error): void }
    console?: { error(...words: unknown[]): void }
  }
  const known = error instanceof Error ? error : new Error(String(error))
  if (process?.emitWarning !== undefined) process.emitWarning(known)
  else console?.error(known)
}

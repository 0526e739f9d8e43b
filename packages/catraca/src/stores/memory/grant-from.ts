import type { Decision } from '../../core/decision.ts'
import type { Ledger } from '../store.ts'

/**
 * Charges one policy with as many units as pass, at least `least`, at most `most`: an admitted decision whose cost they
 * are, or a refusal of `least`. All of it at one instant, between which nobody else asks.
 */
export function grantFrom(ledger: Ledger, member: number, key: string, least: number, most: number): Decision {
  const all = ledger.applySome([member], [key], [most], undefined, true)
  if (all.allowed) return all
  const units = Math.max(least, Math.min(most, all.remaining))
  return ledger.applySome([member], [key], [units], all.nowUs, true)
}

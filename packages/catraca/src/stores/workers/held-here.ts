import { nowUs as clockUs } from '../../core/clock.ts'
import type { Decision } from '../../core/decision.ts'
import type { SharedStates } from './shared-states.ts'

/** Permits looked at for each one that is added: what has expired leaves at least as fast as new ones come. */
const looks = 2

/** The permits of one limiter that one worker holds, by the id that it knows: they come back when it dies. */
export class HeldHere {
  private readonly states: SharedStates
  private readonly permits = new Map<number, Decision>()

  constructor(states: SharedStates) {
    this.states = states
  }

  add(decision: Decision): void {
    if (!decision.source.rule.holds || decision.charged === 0) return
    this.tidy()
    this.permits.set(decision.prior, decision)
  }

  /** Gives units of a permit back, as the worker knows it; says how many. */
  release(known: Decision, units: number): number {
    const held = this.permits.get(known.prior) ?? known
    const given = this.states.refund(held, units)
    if (given > 0 && units >= held.cost) this.permits.delete(known.prior)
    return given
  }

  /** Makes a permit last from now on; false where it had expired. */
  renew(permit: number): boolean {
    const held = this.permits.get(permit)
    if (held === undefined) return false
    const renewed = this.states.renew(held)
    if (renewed !== undefined) this.permits.set(permit, renewed)
    return renewed !== undefined
  }

  /** Gives all back. */
  giveBack(): void {
    for (const held of this.permits.values()) this.states.refund(held, held.cost)
    this.permits.clear()
  }

  /** Lets go of some that expired, in turn. */
  private tidy(): void {
    const nowUs = clockUs()
    let left = looks
    for (const [permit, held] of this.permits) {
      if (left-- === 0) return
      this.permits.delete(permit)
      const lifeUs = Number(held.source.rule.options['permitTtlMs']) * 1_000
      if (nowUs - held.nowUs < lifeUs) this.permits.set(permit, held)
    }
  }
}

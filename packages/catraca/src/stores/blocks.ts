import { Decision } from '../core/decision.ts'
import { reasonCode } from '../core/reason.ts'
import { graceUs } from '../core/rule.ts'
import { flatCopy, storedKey } from './key.ts'

/** A policy by its place or its name. */
type Which = number | string

/** Keys that are refused whatever their limit says. They are few and set by the application, so they are never evicted. */
export class Blocks {
  private readonly perPolicy = new Map<Which, Map<string, { fromUs: number; us: number }>>()
  private count = 0

  get any(): boolean {
    return this.count > 0
  }

  add(policy: Which, key: string, nowUs: number, us: number): void {
    const blocks = this.perPolicy.get(policy) ?? new Map<string, { fromUs: number; us: number }>()
    this.perPolicy.set(policy, blocks)
    blocks.set(flatCopy(storedKey(key)), { fromUs: nowUs, us })
    this.recount()
  }

  remove(policy: Which, key: string): void {
    this.perPolicy.get(policy)?.delete(storedKey(key))
    this.recount()
  }

  /** Ends the blocks of all policies but these. */
  keep(policies: ReadonlySet<Which>): void {
    for (const policy of this.perPolicy.keys()) if (!policies.has(policy)) this.perPolicy.delete(policy)
    this.recount()
  }

  /** µs until the block of a key ends; 0 when it has none. A block set under a clock that was far ahead begins again. */
  waitUs(policy: Which, key: string, nowUs: number): number {
    const stored = storedKey(key)
    const block = this.perPolicy.get(policy)?.get(stored)
    if (block === undefined) return 0
    if (block.fromUs - nowUs > graceUs) block.fromUs = nowUs
    const wait = block.fromUs + block.us - nowUs
    if (wait > 0) return wait
    this.remove(policy, key)
    return 0
  }

  private recount(): void {
    this.count = [...this.perPolicy.values()].reduce((sum, blocks) => sum + blocks.size, 0)
  }
}

/** The answer to a key that is blocked for another `blockUs`, from what its policy would say. */
export function refuseBlocked(one: Decision, blockUs: number): Decision {
  const { source, key, nowUs, cost, lead, level, prior, waitUs } = one
  const reason = reasonCode(one.reason === 'impossible' ? 'impossible' : 'blocked')
  return new Decision(source, key, reason, nowUs, cost, 0, lead, level, prior, Math.max(waitUs, blockUs))
}

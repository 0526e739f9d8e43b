import { graceUs } from '../core/rule.ts'
import { flatCopy, storedKey } from '../stores/key.ts'

/** Keys that are refused whatever their limit says. They are few and set by the application, so they are never evicted. */
export class Blocks {
  private readonly perPolicy: readonly Map<string, { fromUs: number; us: number }>[]
  private count = 0

  constructor(policies: number) {
    this.perPolicy = Array.from({ length: policies }, () => new Map())
  }

  get any(): boolean {
    return this.count > 0
  }

  add(policy: number, key: string, nowUs: number, us: number): void {
    this.perPolicy[policy]?.set(flatCopy(storedKey(key)), { fromUs: nowUs, us })
    this.recount()
  }

  remove(policy: number, key: string): void {
    this.perPolicy[policy]?.delete(storedKey(key))
    this.recount()
  }

  /** µs until the block of a key ends; 0 when it has none. A block set under a clock that was far ahead begins again. */
  waitUs(policy: number, key: string, nowUs: number): number {
    const stored = storedKey(key)
    const block = this.perPolicy[policy]?.get(stored)
    if (block === undefined) return 0
    if (block.fromUs - nowUs > graceUs) block.fromUs = nowUs
    const wait = block.fromUs + block.us - nowUs
    if (wait > 0) return wait
    this.remove(policy, key)
    return 0
  }

  private recount(): void {
    this.count = this.perPolicy.reduce((sum, blocks) => sum + blocks.size, 0)
  }
}

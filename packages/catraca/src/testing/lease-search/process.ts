import type { World } from './world.ts'

/** Something that runs, pauses and fails. */
export class Process {
  protected readonly world: World
  /** How often it was started; what belongs to an earlier start is not done any more. */
  protected life = 1
  private up = true
  private pausedUntilUs = -Infinity
  private readonly deferred: (() => void)[] = []

  constructor(world: World) {
    this.world = world
  }

  /** Does something here; later where it is paused, never where it failed meanwhile. */
  run(action: () => void, life = this.life): void {
    if (life !== this.life || !this.up) return
    if (this.world.nowUs < this.pausedUntilUs) this.deferred.push(() => this.run(action, life))
    else action()
  }

  /** Does nothing for a time; then it does what has come up meanwhile. Says whether it was running. */
  pause(us: number): boolean {
    const { world, life } = this
    if (!this.up || world.nowUs < this.pausedUntilUs) return false
    this.pausedUntilUs = world.nowUs + us
    world.agenda.at(this.pausedUntilUs, () => {
      if (life !== this.life) return
      const actions = this.deferred.splice(0)
      // A process that wakes up may see its timers before its messages.
      if (world.chance.passes(0.3)) actions.reverse()
      for (const action of actions) action()
    })
    return true
  }

  /** Dies, and starts again after a time. Says whether it was running. */
  protected fail(downUs: number, start: () => void): boolean {
    const { world } = this
    if (!this.up) return false
    this.up = false
    this.life++
    this.deferred.length = 0
    world.agenda.at(world.nowUs + downUs, () => {
      this.up = true
      this.pausedUntilUs = -Infinity
      start()
    })
    return true
  }

  /** At some instant within a time, this one included. */
  protected soon(action: () => void, withinUs: number): void {
    const { gridUs } = this.world.profile
    this.later(action, Math.floor((this.world.chance.share() * withinUs) / gridUs) * gridUs)
  }

  protected later(action: () => void, us: number): void {
    const { world, life } = this
    world.agenda.at(world.nowUs + us, () => this.run(action, life))
  }
}

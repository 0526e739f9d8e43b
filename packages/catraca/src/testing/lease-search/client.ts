import type { Answer, Grant } from './centre.ts'
import { Process } from './process.ts'
import { noticeUs } from './profile.ts'
import type { World } from './world.ts'

/** A process that talks with the centre over the network. */
export abstract class Client extends Process {
  readonly place: number
  /** Losses of the centre's memory that it knows of. */
  protected epoch = 0

  constructor(world: World, place: number) {
    super(world)
    this.place = place
  }

  /** It is told that the centre lost its memory. */
  notice(epoch: number): void {
    if (epoch <= this.epoch || !this.world.trial.learns) return
    this.epoch = epoch
    this.learn()
  }

  protected abstract learn(): void

  /** There and back. `done` is told `undefined` at the deadline; a grant that comes later goes back. */
  protected trip(
    least: number,
    most: number,
    isOpen: () => boolean,
    decided: (answer: Answer) => void,
    done: (answer: Answer | undefined) => void,
  ): void {
    const { world, life } = this
    world.note(() => `#${this.place} asks for ${least} to ${most}`)
    world.send(() => {
      const answer = world.centre.grant(least, most, world.nowUs)
      world.note(() => `centre: ${answer.grant?.units ?? `refuses for ${answer.waitUs}`} to #${this.place}`)
      if (life === this.life) decided(answer)
      world.send(() =>
        this.run(() => {
          const { grant, epoch } = answer
          if (epoch > this.epoch) this.soon(() => this.notice(epoch), Math.min(noticeUs, world.profile.deadlineUs))
          if (isOpen()) done(answer)
          else if (grant !== undefined) {
            world.counts.lateGrants++
            this.giveBack(grant, grant.units)
          }
        }, life),
      )
    })
    this.later(() => {
      if (!isOpen()) return
      world.counts.timeouts++
      done(undefined)
    }, world.profile.deadlineUs)
  }

  protected giveBack(grant: Grant, units: number): void {
    const { world } = this
    world.note(() => `#${this.place} gives ${units} back`)
    world.send(() => world.centre.takeBack(grant, units, world.nowUs))
  }
}

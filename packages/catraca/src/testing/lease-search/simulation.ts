import { bringCallers } from './callers.ts'
import { Chance } from './chance.ts'
import { MonotonicClock, WallClock } from './clocks.ts'
import { Instance } from './instance.ts'
import { judge, type Verdict } from './judge.ts'
import type { Counts, Fault } from './log.ts'
import { drawProfile, noticeUs } from './profile.ts'
import { type Line, type Trial, World } from './world.ts'

/** What one run found. */
export interface Run {
  readonly faults: readonly Fault[]
  /** Units admitted beyond the rule in the worst span, of those that a bound speaks of. */
  readonly excess: number
  /** What happened, where it was wanted. */
  readonly trace: readonly Line[]
}

const hourUs = 3_600_000_000

/** Some instances share a key for some seconds of a world drawn from a seed; the log is judged. */
export function simulate(trial: Trial, seed: number, counts: Counts, traced = false): Run {
  const chance = new Chance(seed)
  const profile = drawProfile(trial.rule, trial.terms, trial.instances, chance)
  const world = new World(trial, profile, chance, counts, traced)
  const fleet: Instance[] = []
  const walls: WallClock[] = []
  for (const ppm of profile.drifts) {
    const wall = new WallClock()
    walls.push(wall)
    fleet.push(new Instance(world, fleet, new MonotonicClock(profile.startUs, chance.between(0, hourUs), ppm), wall))
  }
  counts.seeds++
  if (profile.calm) counts.calmSeeds++
  bringCallers(world, fleet)
  bringTrouble(world, fleet, walls)
  let judged = { excess: -Infinity, faults: [] as readonly Verdict[] }
  try {
    world.agenda.runUntil(profile.endUs)
    judged = judge(trial, world.log, world.lostUs, world.bounds)
    for (const { kind, detail, span } of judged.faults) world.blame(kind, detail, span)
    lookBack(world, fleet)
  } catch (cause) {
    world.blame('machine', `throws ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`)
  }
  return { faults: world.faults, excess: judged.excess, trace: world.trace ?? [] }
}

/** Processes that pause, fail and are closed, clocks that are set, and a centre that loses its memory. */
function bringTrouble(world: World, fleet: readonly Instance[], walls: readonly WallClock[]): void {
  const { chance, profile, agenda, trial, counts } = world
  const { ttlUs } = trial.terms
  const times = (most: number, action: () => void): void => {
    for (let left = chance.between(0, most); left > 0; left--) {
      const share = chance.share() * profile.busyUs
      agenda.at(profile.startUs + Math.floor(share / profile.gridUs) * profile.gridUs, action)
    }
  }
  const one = (): Instance => chance.pick(fleet)
  times(2, () => {
    const target = one()
    target.run(() => target.close(profile.deadlineUs * 4 * chance.share()))
  })
  if (profile.calm) return
  times(4, () => {
    counts.clockSteps++
    chance.pick(walls).step(Math.floor((chance.share() - 0.7) * 2 * ttlUs))
  })
  if (chance.passes(0.6)) times(3, () => one().pause(Math.floor(ttlUs * chance.pick([0.1, 1, 2]) * chance.share())))
  if (chance.passes(0.4)) times(2, () => one().crash(Math.floor(ttlUs * chance.share())))
  if (chance.passes(0.4)) {
    times(2, () => {
      counts.losses++
      world.note(() => 'centre loses its memory')
      world.centre.lose(world.nowUs)
      world.lostUs.push(world.nowUs)
      const { epoch } = world.centre
      for (const instance of fleet) {
        const us = Math.floor(noticeUs * chance.share())
        agenda.at(world.nowUs + us, () => instance.run(() => instance.notice(epoch)))
      }
    })
  }
}

/** After all leases ended and went back. */
function lookBack(world: World, fleet: readonly Instance[]): void {
  const { profile, centre, counts, log, trial } = world
  const waiters = fleet.reduce((sum, one) => sum + one.waiters, 0)
  if (waiters > 0) world.blame('waiter', `${waiters} callers were never told anything`)
  const held = fleet.reduce((sum, one) => sum + one.held, 0)
  if (held > 0) world.blame('kept', `${held} units are in hand after all leases ended`)
  if (!profile.calm) return
  counts.balances++
  const admitted = log.reduce((sum, { cost }) => sum + cost, 0)
  if (centre.given !== admitted + centre.returned) {
    world.blame('kept', `of ${centre.given} units given ${admitted} were admitted and ${centre.returned} went back`)
  }
  if (!profile.oneWindow) return
  const used = centre.usedAt(world.nowUs)
  // A bucket drains meanwhile, and what has drained is not given back.
  const drained = trial.rule.options['burst'] === undefined ? 0 : drainedIn(world)
  if (used > admitted + centre.notRefunded || used < Math.floor(admitted - drained)) {
    world.blame('kept', `the centre says that ${used} are used, admitted were ${admitted}`)
  }
}

function drainedIn({ profile, trial }: World): number {
  const { limit, windowMs } = trial.rule.options as { limit: number; windowMs: number }
  return ((profile.endUs - profile.startUs) * limit) / (windowMs * 1_000)
}

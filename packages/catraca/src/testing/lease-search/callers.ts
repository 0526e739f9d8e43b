import { windowUsOf } from '../../stores/lease/terms.ts'
import type { Instance } from './instance.ts'
import type { World } from './world.ts'

/** Brings the callers of a run, in one of two styles. */
export function bringCallers(world: World, fleet: readonly Instance[]): void {
  if (world.profile.tides) bringTides(world, fleet)
  else bringStream(world, fleet)
}

/** One by one and in crowds, and times in which nobody comes. Often at the borders of windows. */
function bringStream(world: World, fleet: readonly Instance[]): void {
  const { chance, profile, agenda, trial } = world
  const { gridUs, gapUs, crowd } = profile
  const windowUs = windowUsOf(trial.rule)
  const gap = (): number => {
    const drawn = chance.share()
    if (drawn < 0.06) return trial.terms.ttlUs * (1 + chance.share())
    if (drawn < 0.12) {
      const ends = (Math.floor(world.nowUs / windowUs) + 1) * windowUs
      return ends + gridUs * chance.between(-1, 1) - world.nowUs
    }
    return gapUs * 2 * chance.share()
  }
  let home = chance.pick(fleet)
  const next = (): void => {
    if (chance.passes(0.3)) home = chance.pick(fleet)
    const together = chance.passes(0.25) ? crowd : 1
    const everywhere = chance.passes(0.3)
    for (let left = chance.between(1, together); left > 0; left--) bring(world, everywhere ? chance.pick(fleet) : home)
    const atUs = world.nowUs + Math.max(gridUs, Math.round(gap() / gridUs) * gridUs)
    if (atUs < profile.startUs + profile.busyUs) agenda.at(atUs, next)
  }
  agenda.at(profile.startUs, next)
}

/**
 * First every instance uses a block, so that it asks for whole ones, then nobody comes for a time, and what is in hand
 * stays there while the rule recovers; then more come to each instance than there is, sometimes after one who makes it ask
 * and leaves. The worst for a lease.
 */
function bringTides(world: World, fleet: readonly Instance[]): void {
  const { chance, profile, agenda, trial } = world
  const { block, ttlUs } = trial.terms
  const { limit } = trial.rule
  const flood = Math.ceil(((2 * limit) / fleet.length + 3 * block) / ((1 + profile.cost) / 2))
  const spread = (us: number, action: () => void): void => {
    const steps = Math.floor(us / profile.gridUs)
    agenda.at(world.nowUs + chance.between(0, steps) * profile.gridUs, action)
  }
  const wave = (): void => {
    const trickleUs = ttlUs * chance.pick([0, 0.05, 0.4])
    const first = chance.pick([2 * block, Math.min(60, limit)])
    const quietUs = profile.quietUs + (chance.passes(0.5) ? trickleUs : 0)
    const { floodUs } = profile
    for (const one of fleet) {
      for (let left = chance.between(1, first); left > 0; left--) spread(trickleUs, () => bring(world, one, 1))
      if (chance.passes(0.3)) {
        agenda.at(world.nowUs + quietUs, () =>
          one.run(() => one.arrive({ cost: Math.min(block, limit), leaves: true })),
        )
      }
      const most = chance.passes(0.8) ? flood : block
      for (let left = Math.min(80, most); left > 0; left--) {
        agenda.at(world.nowUs + quietUs, () => spread(floodUs, () => bring(world, one)))
      }
    }
    const pauseUs = quietUs + floodUs + ttlUs * chance.pick([0.1, 1, 1.5]) * chance.share()
    const atUs = world.nowUs + Math.max(profile.gridUs, Math.floor(pauseUs / profile.gridUs) * profile.gridUs)
    if (atUs + quietUs < profile.startUs + profile.busyUs) agenda.at(atUs, wave)
  }
  agenda.at(profile.startUs, wave)
}

/** One caller; none while somebody waits for a promise, and none after the busy time. */
function bring(world: World, target: Instance, given?: number): void {
  const { profile } = world
  if (world.nowUs < world.quietUntilUs || world.nowUs > profile.startUs + profile.busyUs) return
  const cost = given ?? drawCost(world)
  target.run(() => target.arrive({ cost }))
}

function drawCost({ chance, profile, trial }: World): number {
  const { block } = trial.terms
  const { limit } = trial.rule
  if (limit > block && chance.passes(profile.large)) return chance.between(block + 1, limit)
  return chance.between(1, chance.passes(0.9) ? profile.cost : block)
}

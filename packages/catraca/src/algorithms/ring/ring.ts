import type { DenialReason } from '../../core/reason.ts'
import {
  type Charge,
  graceUs,
  type Kinship,
  lifeMs,
  type Rule,
  raise,
  type ScriptForm,
  type Snapshot,
} from '../../core/rule.ts'

/** Numbers before the entries of a list: index of the oldest, how many, units in use, stored time. */
const header = 4
/** Numbers per entry: tick of admission, units, id of the permit. */
const stride = 3

/**
 * A list of admissions, oldest first, each of which counts for `life` ticks from its admission: an entry of age exactly
 * `life` is gone. The sliding log and the concurrency limit are this list; a permit may also leave early.
 *
 * State: one array per key, a ring of entries (tick, units, permit) that doubles as needed. Snapshot: `level`, the units
 * in use; `origin`, the tick of the newest admission; `prior`, the permit of this one, 0 of an entry that stands for what
 * was used under another rule.
 *
 * An entry that came from a rule of another `life` ends when it did there: its tick is that end less the life here, and
 * may lie ahead of now. So that entries stay in the order in which they end, a later one never ends before an earlier.
 */
export abstract class Ring implements Rule {
  abstract readonly algorithm: string
  abstract readonly denial: DenialReason
  abstract readonly holds: boolean
  abstract readonly lease: 'kept' | 'never'
  abstract readonly options: Readonly<Record<string, string | number>>
  readonly limit: number
  readonly tickUs = 1
  readonly graceTicks = graceUs
  readonly width = 0 as const
  readonly script: ScriptForm
  protected readonly life: number

  /** @param letter Begins the name of stored lists: those of one letter may be kin. */
  constructor(letter: 'l' | 'p', limit: number, lifeUs: number) {
    this.limit = limit
    this.life = lifeUs
    this.script = {
      kind: 'l',
      name: `${letter}${lifeUs},${limit};`,
      numbers: [`${limit}`, `${lifeUs}`],
      unit: 1,
      lifeMs: lifeMs(lifeUs),
    }
  }

  wait(list: Float64Array, _at: number, now: number, cost: number): number {
    if (cost > this.limit) return Infinity
    let over = this.levelAt(list, 0, now) + cost - this.limit
    if (over <= 0) return 0
    let last = this.expired(list, now)
    while ((over -= unitsOf(list, last)) > 0) last++
    return tickOf(list, last) - this.rebase(list, now) + this.life - now
  }

  remaining(list: Float64Array, at: number, now: number): number {
    return Math.max(0, this.limit - this.levelAt(list, at, now))
  }

  charge(list: Float64Array, _at: number, now: number, cost: number, permit: number): Float64Array {
    const time = this.time(list, now)
    const rebase = this.rebase(list, now)
    let expired = this.expired(list, now)
    if (rebase > 0) {
      shift(list, -rebase)
      list[3] = time
    }
    while (expired-- > 0) removeOldest(list)
    return cost > 0 ? append(list, time, cost, permit) : list
  }

  refund(list: Float64Array, _at: number, now: number, charge: Charge, units: number): number {
    // Ids are unique in the process, so every permit and every logged request finds its own entry and no other.
    for (let index = count(list) - 1; index >= 0; index--) {
      if (list[place(list, index) + 2] !== charge.prior) continue
      if (index < this.expired(list, now)) return 0
      const give = Math.min(units, unitsOf(list, index))
      list[place(list, index) + 1] = unitsOf(list, index) - give
      list[2] = (list[2] as number) - give
      // The newest entry says when the list ends: it must be one that counts.
      while (count(list) > 0 && unitsOf(list, count(list) - 1) === 0) list[1] = count(list) - 1
      list[3] = count(list) === 0 ? 0 : Math.min(list[3] as number, newestOf(list))
      return give
    }
    return 0
  }

  /** Tick of the newest admission. */
  originAt(list: Float64Array): number {
    return count(list) === 0 ? 0 : (list[3] as number)
  }

  levelAt(list: Float64Array, _at: number, now: number): number {
    let used = list.length === 0 ? 0 : (list[2] as number)
    for (let index = this.expired(list, now) - 1; index >= 0; index--) used -= unitsOf(list, index)
    return used
  }

  endsAt(list: Float64Array): number {
    return count(list) === 0 ? 0 : newestOf(list) + this.life
  }

  used(list: Float64Array, at: number, now: number): number {
    return this.levelAt(list, at, now)
  }

  abstract kinship(from: Rule): Kinship

  /** The entries of kin with their ends. What is used under a rule of another kind is one entry, admitted now. */
  adopt(
    list: Float64Array,
    at: number,
    nowUs: number,
    from: Rule,
    fromState: Float64Array,
    fromAt: number,
  ): Float64Array {
    if (this.kinship(from) === 'none') return raise(this, list, at, nowUs, from, fromState, fromAt)
    const longer = (from as Ring).life - this.life
    if (longer === 0) return fromState
    const moved = fromState.slice()
    shift(moved, longer)
    return moved
  }

  resetTicks({ lead, level }: Snapshot): number {
    return level === 0 ? 0 : (lead > graceUs ? 0 : lead) + this.life
  }

  delayTicks(): number {
    return 0
  }

  /** Ticks by which all entries have to move back because the newest is ahead of a broken clock. */
  private rebase(list: Float64Array, now: number): number {
    const ahead = this.originAt(list) - now
    return ahead > graceUs ? ahead : 0
  }

  /** The time at which a request counts: never before the newest admission, unless a broken clock made that. */
  private time(list: Float64Array, now: number): number {
    return Math.max(now, this.originAt(list) - this.rebase(list, now))
  }

  /** How many of the oldest entries no longer count. */
  private expired(list: Float64Array, now: number): number {
    const gone = this.time(list, now) - this.life + this.rebase(list, now)
    let entries = 0
    while (entries < count(list) && tickOf(list, entries) <= gone) entries++
    return entries
  }
}

function count(list: Float64Array): number {
  return list.length === 0 ? 0 : (list[1] as number)
}

function place(list: Float64Array, index: number): number {
  const size = (list.length - header) / stride
  const slot = (list[0] as number) + index
  return header + (slot < size ? slot : slot - size) * stride
}

function tickOf(list: Float64Array, index: number): number {
  return list[place(list, index)] as number
}

function unitsOf(list: Float64Array, index: number): number {
  return list[place(list, index) + 1] as number
}

function newestOf(list: Float64Array): number {
  return tickOf(list, count(list) - 1)
}

/** Moves all entries by so many ticks. */
function shift(list: Float64Array, ticks: number): void {
  for (let index = 0; index < count(list); index++) list[place(list, index)] = tickOf(list, index) + ticks
}

function removeOldest(list: Float64Array): void {
  list[2] = (list[2] as number) - unitsOf(list, 0)
  const size = (list.length - header) / stride
  list[0] = ((list[0] as number) + 1) % size
  list[1] = (list[1] as number) - 1
}

function append(list: Float64Array, time: number, units: number, permit: number): Float64Array {
  const target = header + count(list) * stride < list.length ? list : grown(list)
  const entries = count(target)
  const tick = entries === 0 ? time : Math.max(time, newestOf(target))
  target[3] = time
  target[1] = entries + 1
  target[2] = (target[2] as number) + units
  target.set([tick, units, permit], place(target, entries))
  return target
}

/** A list with room: without the entries that were given back, and twice as large as what is left needs. */
function grown(list: Float64Array): Float64Array {
  const live: number[] = []
  for (let index = 0; index < count(list); index++) if (unitsOf(list, index) > 0) live.push(place(list, index))
  const larger = new Float64Array(header + Math.max(2, live.length * 2) * stride)
  larger[1] = live.length
  larger[2] = list.length === 0 ? 0 : (list[2] as number)
  larger[3] = list.length === 0 ? 0 : (list[3] as number)
  live.forEach((from, index) => larger.set(list.subarray(from, from + stride), header + index * stride))
  return larger
}

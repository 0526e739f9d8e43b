import { type Charge, type DenialReason, graceUs, type Outcome, type Rule, type Snapshot } from '../../core/rule.ts'

/** Numbers before the entries of a list: index of the oldest, how many, units in use. */
const header = 3
/** Numbers per entry: tick of admission, units, id of the permit. */
const stride = 3

/**
 * A list of admissions, oldest first, each of which counts for `life` ticks from its admission: an entry of age exactly
 * `life` is gone. The sliding log and the concurrency limit are this list; a permit may also leave early.
 *
 * State: one array per key, a ring of entries (tick, units, permit) that doubles as needed. Snapshot: `level`, the units
 * in use; `origin`, the tick of the newest admission; `prior`, the permit of this one.
 */
export abstract class Ring implements Rule {
  abstract readonly algorithm: string
  abstract readonly denial: DenialReason
  abstract readonly holds: boolean
  abstract readonly options: Readonly<Record<string, string | number>>
  readonly limit: number
  readonly tickUs = 1
  readonly width = 0 as const
  protected readonly life: number

  constructor(limit: number, lifeUs: number) {
    this.limit = limit
    this.life = lifeUs
  }

  evaluate(list: Float64Array, _at: number, now: number, cost: number, out: Outcome): void {
    const entries = count(list)
    const newest = entries === 0 ? 0 : tickOf(list, entries - 1)
    out.rebase = newest - now > graceUs ? newest - now : 0
    const time = out.rebase > 0 ? now : Math.max(now, newest)

    let used = list.length === 0 ? 0 : (list[2] as number)
    let drop = 0
    while (drop < entries && tickOf(list, drop) - out.rebase <= time - this.life) used -= unitsOf(list, drop++)

    out.drop = drop
    out.origin = time
    out.prior = out.permit
    out.allowed = used + cost <= this.limit
    out.level = out.allowed ? used + cost : used
    if (out.allowed) out.wait = 0
    else if (cost > this.limit) out.wait = Infinity
    else {
      let freed = 0
      let last = drop
      for (; used - freed + cost > this.limit; last++) freed += unitsOf(list, last)
      out.wait = tickOf(list, last - 1) - out.rebase + this.life - now
    }
  }

  commit(list: Float64Array, _at: number, cost: number, charged: boolean, out: Outcome): Float64Array {
    if (out.rebase > 0)
      for (let index = 0; index < count(list); index++) list[place(list, index)] = tickOf(list, index) - out.rebase
    for (let dropped = 0; dropped < out.drop; dropped++) removeOldest(list)
    return charged && cost > 0 ? append(list, out.origin, cost, out.prior) : list
  }

  refund(list: Float64Array, _at: number, now: number, charge: Charge, units: number): number {
    for (let index = count(list) - 1; index >= 0; index--) {
      if (!this.isOwn(list, index, charge)) continue
      if (tickOf(list, index) <= now - this.life) return 0
      const give = Math.min(units, unitsOf(list, index))
      list[place(list, index) + 1] = unitsOf(list, index) - give
      list[2] = (list[2] as number) - give
      while (count(list) > 0 && unitsOf(list, 0) === 0) removeOldest(list)
      return give
    }
    return 0
  }

  endsAt(list: Float64Array): number {
    const entries = count(list)
    return entries === 0 ? 0 : tickOf(list, entries - 1) + this.life
  }

  remaining(snapshot: Snapshot): number {
    return Math.max(0, this.limit - snapshot.level)
  }

  resetTicks(snapshot: Snapshot, now: number): number {
    return snapshot.level === 0 ? 0 : snapshot.origin + this.life - now
  }

  delayTicks(): number {
    return 0
  }

  /** True for the entry that a charge made. Ids are unique, so every permit and every logged request finds its own. */
  private isOwn(list: Float64Array, index: number, charge: Charge): boolean {
    return list[place(list, index) + 2] === charge.prior
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

function removeOldest(list: Float64Array): void {
  list[2] = (list[2] as number) - unitsOf(list, 0)
  const size = (list.length - header) / stride
  list[0] = ((list[0] as number) + 1) % size
  list[1] = (list[1] as number) - 1
}

function append(list: Float64Array, tick: number, units: number, permit: number): Float64Array {
  const entries = count(list)
  const target = header + entries * stride < list.length ? list : grown(list, entries)
  target[1] = entries + 1
  target[2] = (target[2] as number) + units
  target.set([tick, units, permit], place(target, entries))
  return target
}

function grown(list: Float64Array, entries: number): Float64Array {
  const larger = new Float64Array(header + Math.max(2, entries * 2) * stride)
  larger[1] = entries
  larger[2] = list.length === 0 ? 0 : (list[2] as number)
  for (let index = 0; index < entries; index++) {
    const from = place(list, index)
    larger.set(list.subarray(from, from + stride), header + index * stride)
  }
  return larger
}

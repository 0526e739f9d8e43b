import type { Drill, Times } from './drill.ts'
import type { Line, Log, Told } from './fleet.ts'
import { heldBy } from './held.ts'
import { type Admission, beyond, type Finding, judge } from './oracle.ts'
import { commonKey, floorRate, instances, keys, plan, policiesOf, timeoutMs } from './plan.ts'
import { starved } from './starved.ts'

/** What a drill came to. `faults` says in words what is not as it must be. */
export interface Outcome {
  readonly fault: string
  readonly decisions: number
  /** The key for which most of what its bound allows was admitted, or more. */
  readonly worst: Finding
  readonly longestMs: number
  /** From the end of the fault until all limiters have recovered; undefined where nothing was degraded. */
  readonly recoveryMs: number | undefined
  /** 99 of 100 decisions during the outage took at most this, once the store was found gone; undefined without one. */
  readonly outageMs: number | undefined
  /** Of the slowest process in its slowest phase. */
  readonly perSecond: number
  /** The longest that a process stood still. */
  readonly lagMs: number
  /** Processors that had nothing to do, on average. */
  readonly idle: number
  readonly events: Readonly<Record<string, number>>
  readonly faults: readonly string[]
}

const recoveryLimitMs = 2_000
/** How much longer than the deadline a decision may take. */
const marginMs = 250
/** Beside the deadline, what it takes to find the store gone: five failures that may begin one after the other. */
const findingMs = 300
/** Rates are of phases that last so long. */
const shortestMs = 900
/** The load is begun by one process after the other. */
const settleMs = 500
/** Times of events and decisions are whole milliseconds. */
const readMs = 2

export function outcomeOf(drill: Drill, log: Log, times: Times): Outcome {
  const faults: string[] = []
  const findings = findingsOf(drill, log)
  for (const { side, policy, key, over, bound } of beyond(findings)) {
    faults.push(`${side} admitted ${over} too many of ${policy} for ${key}; bound ${bound}`)
  }
  const decisions = log.lines.filter(({ counts }) => counts)
  // Of the process that the fault was done to only what it admitted is judged.
  const others = decisions.filter(({ process }) => process !== drill.hurt)
  const lagMs = Math.max(...log.ends.map(({ longestLagMs }, process) => (process === drill.hurt ? 0 : longestLagMs)))
  const busy = lagMs > timeoutMs / 2 || times.idle < 0.2
  faults.push(...log.ends.flatMap(({ failures }, index) => failures.map((words) => `worker ${index}: ${words}`)))
  faults.push(...eventFaults(drill, log.events, busy), ...modeFaults(drill, decisions, log.events))
  // A loss and an outage let less pass, as they must.
  const calm = drill.degrades === 'never' && drill.lost === undefined && drill.clockUs === undefined
  const span = [(times.startMs + settleMs) * 1_000, times.stopMs * 1_000] as const
  if (calm) faults.push(...starved(drill.plan ?? plan, log.lines, ...span))
  const early = earlyRecoveries(drill, log.events, times)
  if (early > 0) faults.push(`${early} events recovered while the fault lasted`)

  const slow: string[] = []
  const longestMs = longest(others)
  if (longestMs > timeoutMs + marginMs) slow.push(`a decision took ${longestMs} ms`)
  const recoveryMs = drill.degrades === 'never' ? undefined : recoveryTime(log.events, times)
  if (recoveryMs !== undefined && recoveryMs > recoveryLimitMs) slow.push(`recovered after ${recoveryMs} ms`)
  const outageMs = drill.degrades === 'once' ? outageTime(others, log.events, times) : undefined
  if (outageMs !== undefined && outageMs > timeoutMs / 4) slow.push(`decisions took ${outageMs} ms in the outage`)
  const perSecond = slowest(others, times)
  if (perSecond < floorRate) slow.push(`${perSecond} decisions a second`)
  if (perSecond < floorRate / 2) faults.push(`${perSecond} decisions a second`)
  // What a machine does that others use says nothing about the library, but for half of the rate.
  if (busy && slow.length > 0) console.log(`${drill.fault}, on a busy machine: ${slow.join('; ')}`)
  else faults.push(...slow)
  const worst = findings.reduce((a, b) => (share(b) > share(a) ? b : a))
  return {
    fault: drill.fault,
    decisions: decisions.length,
    worst,
    longestMs,
    recoveryMs,
    outageMs,
    perSecond,
    lagMs,
    idle: times.idle,
    events: countsOf(log.events),
    faults,
  }
}

/** A bound that is reached is told before one that is not, the exact limit included. */
function share({ over, bound }: Finding): number {
  return over > bound ? Infinity : over <= 0 ? over : over / bound
}

function findingsOf(drill: Drill, { lines }: Log): Finding[] {
  const policies = policiesOf(drill.plan ?? plan)
  const groups = new Map<string, Line[]>()
  for (const line of lines) {
    const group = `${line.policy}:${line.key}`
    const known = groups.get(group)
    if (known === undefined) groups.set(group, [line])
    else known.push(line)
  }
  const capacities = drill.capacities ?? (drill.lost === undefined ? 0 : 1)
  return [...groups.values()].flatMap((group) => {
    const [{ policy: place, key }] = group as [Line]
    const { name, law, limiter } = policies[place]!
    // Without the store everybody passes: only what the store decided is limited.
    const judged = group.filter((line) => line.allowed && !(limiter.mode === 'open' && line.degraded))
    const admissions = judged.map((line) => admissionOf(line, drill.clockUs))
    return judge(name, keys[key] ?? commonKey, law, admissions, capacities, heldBy(limiter, law))
  })
}

function admissionOf(line: Line, clocks: readonly number[] = [0]): Admission {
  const { windowUs, cost, process, degraded, sentMs, tookMs, releasedMs } = line
  // The clock of a process is read once for many decisions of a busy turn, so one can seem to come before the release
  // that made room for it: a permit is surely held when its holder knows.
  const us = degraded && releasedMs > 0 ? (sentMs + tookMs + 1) * 1_000 : line.us
  // Real time: what a moved clock showed, less how far it was moved, which the clock of the process tells apart.
  const ahead = us - sentMs * 1_000
  const offsetUs = clocks.reduce((a, b) => (Math.abs(b - ahead) < Math.abs(a - ahead) ? b : a))
  const released = releasedMs === 0 ? {} : { releasedUs: releasedMs * 1_000 }
  return { us: us - offsetUs, windowUs, offsetUs, cost, process, degraded, ...released }
}

/** On a busy machine the server may be late once more, at the end too: outages must then only begin and end in turn. */
function eventFaults({ degrades, lost, hurt, ...drill }: Drill, events: readonly Told[], busy: boolean): string[] {
  const faults: string[] = []
  for (let process = 0; process < instances; process++) {
    if (process === hurt) continue
    for (const { name: limiter } of drill.plan ?? plan) {
      const own = events.filter((event) => event.process === process && event.limiter === limiter)
      const changes = own.filter(({ name }) => name === 'degraded' || name === 'recovered').map(({ name }) => name)
      const inTurn = changes.every((name, at) => name === (at % 2 === 0 ? 'degraded' : 'recovered'))
      if (!inTurn || (changes.length % 2 !== 0 && !busy)) faults.push(`${limiter} of ${process}: ${changes.join(', ')}`)
      const outages = Math.ceil(changes.length / 2)
      const least = degrades === 'never' ? 0 : 1
      const most = degrades === 'often' || busy ? Infinity : least + Math.min(lateAnswers(own), lateAllowed)
      if (outages < least || outages > most) faults.push(`${limiter} of ${process} had ${outages} outages`)
      const losses = own.filter(({ name }) => name === 'store.lost').map(({ kind }) => kind)
      if (losses.join() !== (lost ?? '')) faults.push(`${limiter} of ${process} was told of "${losses.join()}"`)
    }
  }
  for (const { name, cause } of events) if (name === 'store.fault') faults.push(`store.fault: ${cause}`)
  if (faults.length > 0) for (const cause of causesOf(events)) faults.push(`degraded by: ${cause}`)
  return faults
}

/** Answers that come late now and then are the machine's: they cost a moment of declared modes and are printed. */
const lateAllowed = 2
const momentMs = 1_000
const late = 'the store did not answer in time'

/** Outages of one limiter that a late answer began and that were over at once. */
function lateAnswers(own: readonly Told[]): number {
  return own.filter(({ name, cause, atMs }, at) => {
    if (name !== 'degraded' || cause !== late) return false
    const end = own.slice(at).find((event) => event.name === 'recovered')
    return end !== undefined && end.atMs - atMs <= momentMs
  }).length
}

function causesOf(events: readonly Told[]): Set<string> {
  return new Set(events.flatMap(({ name, cause }) => (name === 'degraded' && cause !== undefined ? [cause] : [])))
}

/** What the modes promise of every single decision. */
function modeFaults(drill: Drill, decisions: readonly Line[], events: readonly Told[]): string[] {
  const policies = policiesOf(drill.plan ?? plan)
  const faults = new Set<string>()
  const outages = outagesOf(events)
  for (const { process, policy, allowed, degraded, storeClosed, sentMs, tookMs } of decisions) {
    const { mode, name } = policies[policy]!.limiter
    if (degraded && mode === 'open' && !allowed) faults.add(`${name} is open and refused without the store`)
    if (degraded && mode === 'closed' && (allowed || !storeClosed)) faults.add(`${name} is closed and let pass`)
    if (storeClosed && !(degraded && mode === 'closed')) faults.add(`${name} said store-closed with the store there`)
    if (!degraded) continue
    const within = outages.some(
      (one) =>
        one.process === process &&
        one.limiter === name &&
        one.fromMs <= sentMs + tookMs + readMs &&
        sentMs <= one.toMs + readMs,
    )
    if (!within) faults.add(`${name} decided without the store outside its outages`)
  }
  return [...faults]
}

interface Outage {
  readonly process: number
  readonly limiter: string
  readonly fromMs: number
  readonly toMs: number
}

function outagesOf(events: readonly Told[]): Outage[] {
  return events.flatMap(({ name, process, limiter, atMs: fromMs }, at) => {
    if (name !== 'degraded') return []
    const end = events.slice(at).find((e) => e.name === 'recovered' && e.process === process && e.limiter === limiter)
    return [{ process, limiter, fromMs, toMs: end?.atMs ?? Infinity }]
  })
}

/** A store that cannot serve is not taken for one that can. Of a fault that ends by itself nobody knows when it did. */
function earlyRecoveries({ degrades, momentary }: Drill, events: readonly Told[], { beginMs, endMs }: Times): number {
  if (degrades !== 'once' || momentary) return 0
  const during = ({ atMs }: Told): boolean => atMs > beginMs + findingMs && atMs < endMs - findingMs
  return events.filter((event) => event.name === 'recovered' && during(event)).length
}

/** Until the last limiter has recovered, for the first time after the fault. It may be back before that was seen here. */
function recoveryTime(events: readonly Told[], { endMs }: Times): number | undefined {
  const firsts = new Map<string, number>()
  for (const { name, process, limiter, atMs } of events) {
    const who = `${process}:${limiter}`
    if (name === 'recovered' && atMs > endMs - findingMs && !firsts.has(who)) firsts.set(who, Math.max(0, atMs - endMs))
  }
  return firsts.size === 0 ? undefined : Math.max(...firsts.values())
}

function outageTime(decisions: readonly Line[], events: readonly Told[], { endMs }: Times): number {
  const found = Math.max(...events.filter(({ name }) => name === 'degraded').map(({ atMs }) => atMs)) + findingMs
  const took = decisions
    .filter(({ sentMs }) => sentMs > found && sentMs < endMs)
    .map(({ tookMs }) => tookMs)
    .toSorted((a, b) => a - b)
  return took[Math.floor(took.length * 0.99)] ?? 0
}

function slowest(decisions: readonly Line[], { startMs, beginMs, endMs, stopMs }: Times): number {
  const rates: number[] = []
  const phases = [
    [startMs, beginMs],
    [beginMs, endMs],
    [endMs, stopMs],
  ] as const
  for (const [fromMs, toMs] of phases) {
    // That of a fault which is over at once says nothing.
    if (toMs - fromMs < shortestMs) continue
    for (const process of new Set(decisions.map((one) => one.process))) {
      const own = decisions.filter((one) => one.process === process && one.sentMs >= fromMs && one.sentMs < toMs)
      rates.push((own.length * 1_000) / (toMs - fromMs))
    }
  }
  return Math.floor(Math.min(...rates))
}

function longest(decisions: readonly Line[]): number {
  return decisions.reduce((most, { tookMs }) => Math.max(most, tookMs), 0)
}

function countsOf(events: readonly Told[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { name, kind } of events) {
    const what = kind === undefined ? name : `lost by ${kind}`
    counts[what] = (counts[what] ?? 0) + 1
  }
  return counts
}

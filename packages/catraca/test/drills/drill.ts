import { setTimeout as sleep } from 'node:timers/promises'
import { Fleet, type Log, type Order, type Target } from './fleet.ts'
import { idleMeter, turn } from './machine.ts'
import { type Outcome, outcomeOf } from './outcome.ts'
import { type Plan, plan } from './plan.ts'
import { print } from './report.ts'

/** What is done to the store, and what may come of it. */
export interface Drill {
  readonly fault: string
  readonly target: Target
  begin(fleet: Fleet): unknown
  /** Takes the fault back; resolves when the store can serve. */
  end?(fleet: Fleet): unknown
  /** True where the fault is over as soon as it is done, or ends by itself: then `end`, which waits for that, is called at once. */
  readonly momentary?: true
  /** How often every limiter loses the store. */
  readonly degrades: 'once' | 'often' | 'never'
  /** What the store is said to have lost, once to every limiter; undefined: nothing. */
  readonly lost?: 'restart' | 'flush' | 'failover'
  /** How often the store may forget a key: each time hands out one capacity more. Default: once where it lost something. */
  readonly capacities?: number
  /** How far the server's clock is put forward, before and after; undefined where it is not touched. */
  readonly clockUs?: readonly number[]
  /** What the processes limit. Default: rules of which nothing is leased. */
  readonly plan?: Plan
  /** The place of the process to which the fault is done, of which neither speed nor calm is expected. */
  readonly hurt?: number
  /** True where the fault is the wall clock of that process. */
  readonly steppedWall?: true
  /** The fault lasts at least so long. */
  readonly leastMs?: number
}

export interface Times {
  readonly startMs: number
  readonly beginMs: number
  readonly endMs: number
  readonly stopMs: number
  /** Processors that had nothing to do from start to stop, on average. */
  readonly idle: number
}

export const full = process.env['CATRACA_DRILLS'] === 'full'
const phases = full ? { before: 5_000, during: 10_000, after: 10_000 } : { before: 1_000, during: 2_000, after: 2_000 }
/** For the test of one drill: its turn, and start and stop of its processes, included. */
export const drillMs = full ? 240_000 : 120_000

let drills = 0

/** Three processes under load, before, during and after the fault. Prints a row; the caller judges the outcome. */
export async function run(drill: Drill): Promise<Outcome> {
  const endTurn = await turn()
  try {
    const { log, times } = await load(drill)
    const outcome = outcomeOf(drill, log, times)
    print(outcome)
    return outcome
  } finally {
    endTurn()
  }
}

async function load(drill: Drill): Promise<{ log: Log; times: Times }> {
  const prefix = `drill-${process.pid}-${drills++}`
  const { target, clockUs, steppedWall = false, leastMs = 0 } = drill
  const order: Order = { target, prefix, plan: drill.plan ?? plan, steppedClock: clockUs !== undefined, steppedWall }
  const fleet = await Fleet.start(order)
  try {
    const idle = idleMeter()
    const startMs = Date.now()
    await sleep(phases.before)
    const beginMs = Date.now()
    await drill.begin(fleet)
    if (!drill.momentary) await sleep(Math.max(0, beginMs + Math.max(phases.during, leastMs) - Date.now()))
    await drill.end?.(fleet)
    const endMs = Date.now()
    await sleep(phases.after)
    const times = { startMs, beginMs, endMs, stopMs: Date.now(), idle: idle() }
    return { log: await fleet.stop(), times }
  } finally {
    fleet.kill()
  }
}

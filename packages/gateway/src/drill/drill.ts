import type { GatewayDocument } from '@catraca/config'
import { type Fault, faults } from './drill-faults.ts'
import { judge, type Verdict } from './drill-judge.ts'
import { type DrillPlan, planDrill } from './drill-plan.ts'
import { Traffic } from './drill-traffic.ts'
import { startEdges, startUpstream } from './edges.ts'
import { FaultProxy } from './fault-proxy.ts'
import { RedisProcess } from './redis-process.ts'

/** Options of {@link runDrill}. */
export interface DrillOptions {
  readonly file: GatewayDocument
  readonly fault: keyof typeof faults
  /** Edge processes, 1 to 16. */
  readonly edges: number
  /** Seconds before, during and after the fault. */
  readonly seconds: readonly [before: number, during: number, after: number]
  /** A Redis of the user's own, as `redis://host:port`. Default: one that the drill starts. */
  readonly redis?: string
  /** Called with a share of the whole, 0 to 1, and what goes on. */
  readonly onProgress?: (share: number, words: string) => void
  readonly signal?: AbortSignal
}

/** What came of a drill. */
export interface DrillResult {
  readonly fault: string
  readonly words: string
  readonly verdicts: readonly Verdict[]
  readonly left: DrillPlan['left']
  /** True when every policy did what the file declares. */
  readonly good: boolean
}

const progressMs = 250

/**
 * Puts real edges with the policies of a file over a Redis through a fault, and judges every policy by what it declares.
 * Everything it starts it ends, also when it is aborted. Rejects where something could not be started.
 */
export async function runDrill(options: DrillOptions): Promise<DrillResult> {
  const { file, edges, seconds, signal } = options
  const fault = faults[options.fault] as Fault
  const plan = await planDrill(file, edges)
  const words = fault.words
  if (plan.drilled.length === 0)
    return { fault: String(options.fault), words, verdicts: [], left: plan.left, good: true }
  const ends: (() => unknown)[] = []
  try {
    const redis = options.redis === undefined ? await RedisProcess.start() : undefined
    if (redis !== undefined) ends.push(() => redis.stop())
    const { host, port } =
      options.redis === undefined ? { host: '127.0.0.1', port: redis?.port ?? 0 } : placeOf(options.redis)
    const proxy = await FaultProxy.start(port, host)
    ends.push(() => proxy.close())
    const upstream = await startUpstream(ends)
    const started = await startEdges(edges, plan.document(proxy.url, upstream), ends)
    const target = { proxy, redis }
    const traffic = new Traffic(started, plan.drilled)
    ends.push(() => traffic.stop())
    await traffic.warmUp()
    traffic.start()
    const total = seconds.reduce((sum, one) => sum + one, 0) * 1_000
    const wait = (until: number, what: string): Promise<void> => pass(traffic, until, total, what, options)
    await wait(seconds[0] * 1_000, 'before')
    const faultMs = traffic.nowMs
    await fault.begin(target)
    await wait(faultMs + seconds[1] * 1_000, words)
    await fault.end(target)
    const restoredMs = traffic.nowMs
    await wait(restoredMs + seconds[2] * 1_000, 'after')
    const endMs = traffic.nowMs
    await traffic.stop()
    signal?.throwIfAborted()
    const phases = { faultMs, restoredMs, endMs }
    const verdicts = plan.drilled.map((one) => judge(one, edges, fault, phases, traffic.answers))
    return { fault: String(options.fault), words, verdicts, left: plan.left, good: verdicts.every(({ good }) => good) }
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

async function pass(
  traffic: Traffic,
  until: number,
  total: number,
  what: string,
  options: DrillOptions,
): Promise<void> {
  while (traffic.nowMs < until) {
    options.signal?.throwIfAborted()
    options.onProgress?.(Math.min(1, traffic.nowMs / total), what)
    await new Promise((resolve) => setTimeout(resolve, Math.min(progressMs, until - traffic.nowMs)))
  }
}

function placeOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: port === '' ? 6_379 : Number(port) }
}

import { Agent, request } from 'node:http'
import type { Drilled } from './drill-plan.ts'

/** One answer of an edge. */
export interface Answer {
  readonly policy: string
  /** When it was asked, ms since the traffic began. */
  readonly atMs: number
  /** 0 where there was no answer. */
  readonly status: number
  readonly retryAfter: boolean
  readonly tookMs: number
}

/** Requests per second to each edge for each policy: enough to see, few enough that the load is not the fault. */
const perSecond = 20
const stepMs = 50
const timeoutMs = 5_000

/** Asks every edge about every policy at an even pace until it is stopped. Nothing is asked twice. */
export class Traffic {
  readonly answers: Answer[] = []
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 64 })
  private readonly edges: readonly string[]
  private readonly drilled: readonly Drilled[]
  private began = performance.now()
  private readonly underWay = new Set<Promise<void>>()
  private timer: NodeJS.Timeout | undefined
  private sent = 0

  constructor(edges: readonly string[], drilled: readonly Drilled[]) {
    this.edges = edges
    this.drilled = drilled
  }

  get nowMs(): number {
    return performance.now() - this.began
  }

  /** Asks everything once, so that connections and code are warm, and forgets the answers. */
  async warmUp(): Promise<void> {
    for (const edge of this.edges) for (const one of this.drilled) this.ask(edge, one)
    await Promise.all(this.underWay)
    this.answers.length = 0
    this.began = performance.now()
  }

  start(): void {
    this.timer = setInterval(() => this.step(), stepMs)
  }

  /** Resolves when everything that was asked is answered. */
  async stop(): Promise<void> {
    clearInterval(this.timer)
    await Promise.all(this.underWay)
    this.agent.destroy()
  }

  private step(): void {
    const due = Math.floor((this.nowMs * perSecond) / 1_000)
    // After a pause of this process what was missed is not made up for.
    this.sent = Math.max(this.sent, due - perSecond)
    for (; this.sent < due; this.sent++) {
      for (const edge of this.edges) for (const one of this.drilled) this.ask(edge, one)
    }
  }

  private ask(edge: string, { policy, method, path, headers, body }: Drilled): void {
    const atMs = this.nowMs
    const asked = new Promise<void>((resolve) => {
      const note = (status: number, retryAfter: boolean): void => {
        this.answers.push({ policy, atMs, status, retryAfter, tookMs: this.nowMs - atMs })
        resolve()
      }
      const sent = request(
        new URL(path, edge),
        { method, headers, agent: this.agent, timeout: timeoutMs },
        (response) => {
          response.resume()
          response.once('end', () => note(response.statusCode ?? 0, response.headers['retry-after'] !== undefined))
          response.once('error', () => note(0, false))
        },
      )
      sent.once('timeout', () => sent.destroy())
      sent.once('error', () => note(0, false))
      sent.end(body)
    })
    this.underWay.add(asked)
    void asked.finally(() => this.underWay.delete(asked))
  }
}

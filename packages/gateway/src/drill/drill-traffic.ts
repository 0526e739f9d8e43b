import { Agent, request } from 'node:http'
import type { Drilled } from './drill-plan.ts'

/** One answer of an edge. */
export interface Answer {
  readonly policy: string
  /** When it was asked, ms since the traffic began. */
  readonly atMs: number
  /**
   * `admitted`: 2xx. `limited`: refused by a limit, 429 or, where nobody's own limit is it, 503. `closed`: 503 with
   * Retry-After because nothing passes unchecked. `failed`: any other answer, or none.
   */
  readonly kind: 'admitted' | 'limited' | 'closed' | 'failed'
  readonly tookMs: number
}

/** Requests per second to each edge for each policy: enough to see, few enough that the load is not the fault. */
const perSecond = 20
const stepMs = 10
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
    const { edges, drilled } = this
    const pairs = edges.length * drilled.length
    const due = Math.floor((this.nowMs * perSecond * pairs) / 1_000)
    // After a pause of this process what was missed is not made up for.
    this.sent = Math.max(this.sent, due - pairs)
    for (; this.sent < due; this.sent++) {
      const pair = this.sent % pairs
      this.ask(edges[pair % edges.length] as string, drilled[Math.floor(pair / edges.length)] as Drilled)
    }
  }

  private ask(edge: string, { policy, method, path, headers, body }: Drilled): void {
    const atMs = this.nowMs
    const asked = new Promise<void>((resolve) => {
      const note = (kind: Answer['kind']): void => {
        this.answers.push({ policy, atMs, kind, tookMs: this.nowMs - atMs })
        resolve()
      }
      const url = new URL(path, edge)
      const sent = request(url, { method, headers, agent: this.agent, timeout: timeoutMs }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.once('end', () => note(kindOf(response.statusCode ?? 0, 'retry-after' in response.headers, text)))
        response.once('error', () => note('failed'))
      })
      sent.once('timeout', () => sent.destroy())
      sent.once('error', () => note('failed'))
      sent.end(body)
    })
    this.underWay.add(asked)
    void asked.finally(() => this.underWay.delete(asked))
  }
}

/** How the problem document begins that says why nothing passes. */
const unchecked = 'The limit cannot be checked'

function kindOf(status: number, retryAfter: boolean, text: string): Answer['kind'] {
  if (status >= 200 && status < 300) return 'admitted'
  if (status === 429) return 'limited'
  if (status !== 503 || !retryAfter) return 'failed'
  return text.includes(unchecked) ? 'closed' : 'limited'
}

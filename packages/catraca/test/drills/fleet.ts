import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { commonKey, hotKeys, instances, keys, type Plan, rate, timeoutMs } from './plan.ts'

/** Where the workers find the store. */
export interface Target {
  readonly kind: 'single' | 'sentinel' | 'cluster'
  readonly ports: readonly number[]
  readonly name?: string
}

export interface Told {
  readonly process: number
  readonly limiter: string
  readonly name: string
  readonly atMs: number
  readonly kind?: string
  readonly cause?: string
  readonly pauseMs?: number
}

/** What one policy said to one request. */
export interface Line {
  readonly process: number
  readonly policy: number
  /** A place in `keys`, or after them for the common key. */
  readonly key: number
  readonly cost: number
  readonly allowed: boolean
  readonly degraded: boolean
  /** False for all but the first policy of a stack. */
  readonly counts: boolean
  readonly storeClosed: boolean
  /** When it was decided, by the clock that decided; of a unit in hand by that of the machine: see worker-clock.mjs. */
  readonly us: number
  /** When the window began in which it is counted. */
  readonly windowUs: number
  readonly sentMs: number
  readonly tookMs: number
  readonly releasedMs: number
}

/** How a worker ended. */
export interface End {
  readonly failures: readonly string[]
  readonly longestLagMs: number
}

export interface Log {
  readonly lines: readonly Line[]
  readonly events: readonly Told[]
  readonly ends: readonly End[]
}

export interface Order {
  readonly target: Target
  readonly prefix: string
  readonly plan: Plan
  /** True where the clock of the server is moved. */
  readonly steppedClock?: boolean
  /** True where the wall clock of a process is moved, which it must be prepared for. */
  readonly steppedWall?: boolean
}

const script = fileURLToPath(new URL('./worker.mjs', import.meta.url))
/** Numbers of one line, as worker-log.mjs writes them. */
const width = 11
const startMs = 20_000
const stopMs = 10_000

/** The processes that share a store. */
export class Fleet {
  private readonly workers: readonly Worker[]

  private constructor(workers: readonly Worker[]) {
    this.workers = workers
  }

  /** Resolves when all of them decide by the store and have begun their load. */
  static async start(order: Order): Promise<Fleet> {
    const workers = Array.from({ length: instances }, (_, index) => new Worker(index, order))
    const fleet = new Fleet(workers)
    try {
      await Promise.all(workers.map((worker) => worker.wait('ready', startMs)))
    } catch (error) {
      fleet.kill()
      throw error
    }
    for (const worker of workers) worker.send('go')
    return fleet
  }

  get events(): Told[] {
    return this.workers.flatMap(({ events }) => events)
  }

  /** Ends the load and the processes, each of which must end by itself. */
  async stop(): Promise<Log> {
    try {
      for (const worker of this.workers) worker.send('stop')
      const ends = await Promise.all(this.workers.map((worker) => worker.end()))
      const lines = this.workers.flatMap((worker) => worker.lines())
      return { lines, events: this.events, ends }
    } finally {
      this.kill()
    }
  }

  /** Sends a signal to one process; after SIGKILL its log is what it had told by then. */
  signal(index: number, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.workers[index]?.signal(signal)
  }

  /** Sets the wall clock of one process so far off. */
  stepWall(index: number, wallStepMs: number): void {
    this.workers[index]?.send({ wallStepMs })
  }

  /** For a drill that failed. */
  kill(): void {
    for (const worker of this.workers) worker.kill()
  }
}

class Worker {
  readonly events: Told[] = []
  private readonly index: number
  private readonly child: ChildProcess
  private readonly chunks: Float64Array[] = []
  private offsetUs = Infinity
  private readonly exited: Promise<unknown[]>
  private readonly said = new Map<string, unknown>()
  private output = ''
  private killed = false

  constructor(index: number, order: Order) {
    this.index = index
    // As a user's process: the built library, without the flags and conditions of the test runner.
    const { NODE_OPTIONS: _, ...env } = process.env
    this.child = fork(script, order.steppedWall ? ['stepped-wall'] : [], {
      execArgv: [],
      env,
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.exited = once(this.child, 'exit')
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.output += chunk.toString()
      })
    }
    this.child.on('error', () => {})
    this.child.on('message', (message: Record<string, unknown>) => {
      if (message['lines'] !== undefined) {
        this.chunks.push(message['lines'] as Float64Array)
        this.offsetUs = message['offsetUs'] as number
      } else if (message['event'] !== undefined) this.events.push({ ...(message['event'] as Told), process: index })
      else for (const [name, value] of Object.entries(message)) this.said.set(name, value)
    })
    this.send({ ...order, keys, hotKeys, commonKey, instances, timeoutMs, rate })
  }

  send(message: object | string): void {
    if (this.child.connected) this.child.send(message)
  }

  async wait(name: string, limitMs: number): Promise<unknown> {
    const until = performance.now() + limitMs
    while (!this.said.has(name)) {
      if (hasEnded(this.child)) throw new Error(`worker ${this.index} ended before "${name}": ${this.output}`)
      if (performance.now() > until) throw new Error(`worker ${this.index}: no "${name}" within ${limitMs} ms`)
      await new Promise((resolve) => {
        setTimeout(resolve, 5)
      })
    }
    return this.said.get(name)
  }

  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.child.kill(signal)
    if (signal === 'SIGKILL') this.killed = true
  }

  async end(): Promise<End> {
    if (this.killed) {
      await this.exited
      return { failures: this.output === '' ? [] : [`said: ${this.output}`], longestLagMs: 0 }
    }
    const end = (await this.wait('stopped', stopMs)) as End
    const timer = setTimeout(() => this.kill(), stopMs)
    const [code, signal] = await this.exited
    clearTimeout(timer)
    const failures = [...end.failures]
    if (code !== 0) failures.push(`ended with ${String(code ?? signal)}`)
    if (this.output !== '') failures.push(`said: ${this.output}`)
    return { ...end, failures }
  }

  kill(): void {
    if (!hasEnded(this.child)) this.child.kill('SIGKILL')
  }

  lines(): Line[] {
    return this.chunks.flatMap((chunk) =>
      Array.from({ length: chunk.length / width }, (_, row) => this.line(chunk.subarray(row * width))),
    )
  }

  private line(numbers: Float64Array): Line {
    const [policy = 0, key = 0, cost = 0, flags = 0, closed = 0] = numbers
    const [nowUs = 0, takenUs = 0, windowUs = 0, sentMs = 0, tookMs = 0, releasedMs = 0] = numbers.subarray(5)
    // A whole µs is rounded down when it is read.
    const us = takenUs === 0 ? nowUs : Math.min(nowUs, Math.ceil(this.offsetUs + takenUs + 1))
    return {
      process: this.index,
      policy,
      key,
      cost,
      allowed: (flags & 1) !== 0,
      degraded: (flags & 2) !== 0,
      counts: (flags & 4) !== 0,
      storeClosed: closed === 1,
      us,
      windowUs,
      sentMs,
      tookMs,
      releasedMs,
    }
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

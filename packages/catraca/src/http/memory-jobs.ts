import { nowUs as clockUs, later } from '../core/clock.ts'
import { CatracaError, show } from '../core/errors.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { Signal } from '../limiter/signal.ts'
import { type Entry, JobLine } from '../resilience/job-line/job-line.ts'
import type { JobStatus, Jobs, Work } from './jobs.ts'

/** The `AbortSignal` of the platform, where its types are known. */
export type EndSignal = typeof globalThis extends { AbortSignal: { prototype: infer S } } ? S : Signal

/** Options of {@link memoryJobs}. */
export interface MemoryJobsOptions<R> {
  /**
   * Carries one piece of work out; what it gives stands in the status as JSON. What it throws is `failed`. `signal` aborts
   * when the runner is closed.
   */
  run: (work: Work<R>, signal: EndSignal) => unknown
  /** Where callers ask for the status, without a slash at the end. Default `/jobs`. */
  path?: string
  /** Jobs that wait at the same time: 1 to 100,000. Default 100. Beyond: the next answer to the excess, such as 429. */
  maxQueued?: number
  /** Of them, jobs of one caller: 1 to `maxQueued`. Default a quarter of it, rounded up. */
  maxPerCaller?: number
  /** Jobs that run at the same time: 1 to 1,000. Default 1. */
  concurrency?: number
  /** Jobs whose end is remembered: 0 to 100,000. Default 1,000. */
  maxKept?: number
}

interface Job<R> {
  readonly work: Work<R>
  status: JobStatus
}

const optionNames = ['run', 'path', 'maxQueued', 'maxPerCaller', 'concurrency', 'maxKept'] as const

/**
 * Carries accepted work out in this process, in the order in which it came, each piece when its policies admit it. What
 * waits is lost when the process ends.
 */
export class MemoryJobs<R = unknown> implements Jobs<R> {
  readonly path: string
  private readonly run: MemoryJobsOptions<R>['run']
  private readonly line: JobLine<Job<R>>
  private readonly maxKept: number
  /** By id; those that are over are also in {@link MemoryJobs.over}, oldest first. */
  private readonly known = new Map<string, Job<R>>()
  private readonly over: string[] = []
  private readonly stop = new AbortController()
  private cancelWake: (() => void) | undefined

  /** @internal Use {@link memoryJobs}. */
  constructor(options: MemoryJobsOptions<R>) {
    const { run, path = '/jobs', maxQueued = 100, concurrency = 1, maxKept = 1_000 } = options
    const { maxPerCaller = Math.ceil(maxQueued / 4) } = options
    this.run = run
    this.path = path
    this.maxKept = maxKept
    this.line = new JobLine({ maxQueued, maxPerCaller, concurrency })
  }

  /** Jobs that wait. */
  get queued(): number {
    return this.line.queued
  }

  submit(work: Work<R>): string | undefined {
    if (this.stop.signal.aborted) return undefined
    const id = randomId()
    const job: Job<R> = { work, status: { id, state: 'queued', acceptedAt: timeText() } }
    if (!this.line.add(job, work.caller)) return undefined
    this.known.set(id, job)
    // Not before the caller has its answer.
    this.wakeAt(clockUs())
    return id
  }

  find(id: string): JobStatus | undefined {
    return this.known.get(id)?.status
  }

  close(): void {
    this.stop.abort()
    this.cancelWake?.()
    for (const { work, status } of this.line.clear()) {
      this.known.delete(status.id)
      work.over()
    }
  }

  private wakeAt(us: number): void {
    this.cancelWake?.()
    this.cancelWake = undefined
    if (us === Infinity || this.stop.signal.aborted) return
    this.cancelWake = later(Math.max(0, Math.ceil((us - clockUs()) / 1_000)), () => {
      this.cancelWake = undefined
      this.advance()
    })
  }

  /** Tries what may be tried now. */
  private advance(): void {
    for (let entry = this.line.next(clockUs()); entry !== undefined; entry = this.line.next(clockUs())) {
      void this.attempt(entry)
    }
    this.wakeAt(this.line.wakeUs())
  }

  private async attempt(entry: Entry<Job<R>>): Promise<void> {
    const { job } = entry
    let waitMs = retryMs
    try {
      waitMs = await job.work.ready()
    } catch {
      // Who cannot be asked now is asked again.
    }
    if (this.stop.signal.aborted) {
      job.work.over()
      return
    }
    if (waitMs > 0) {
      this.line.defer(entry, clockUs() + Math.ceil(Math.min(waitMs, longestMs) * 1_000))
    } else {
      this.line.start(entry)
      this.advance()
      await this.carryOut(job)
      this.line.end()
    }
    if (!this.stop.signal.aborted) this.advance()
  }

  private async carryOut(job: Job<R>): Promise<void> {
    const { work } = job
    job.status = { ...job.status, state: 'running', startedAt: timeText() }
    try {
      const result = await this.run(work, this.stop.signal)
      job.status = { ...job.status, state: 'done', endedAt: timeText(), ...(result !== undefined && { result }) }
    } catch (error) {
      const message = error instanceof Error ? error.message : 'the work failed'
      job.status = { ...job.status, state: 'failed', endedAt: timeText(), error: message }
    }
    work.over()
    this.over.push(job.status.id)
    while (this.over.length > this.maxKept) this.known.delete(this.over.shift() as string)
  }
}

/** How long until work is tried again whose policies could not be asked, and at the latest in any case. */
const retryMs = 1_000
const longestMs = 60_000

/** 128 bits that nobody can guess. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

function timeText(): string {
  return new Date(clockUs() / 1_000).toISOString()
}

/** A bounded runner in this process. Throws a `CatracaError` for options that are not allowed. */
export function memoryJobs<R = unknown>(options: MemoryJobsOptions<R>): MemoryJobs<R> {
  rejectUnknown(optionNames, options, 'memoryJobs')
  const { run, path, maxQueued = 100, maxPerCaller, concurrency, maxKept } = options
  if (typeof run !== 'function') throw invalid('memoryJobs.run', run, 'a function')
  if (path !== undefined && !/^(?:\/[\w.~-]+)+$/.test(path)) {
    throw invalid('memoryJobs.path', path, 'a path such as "/jobs", without a slash at the end')
  }
  check(maxQueued, 1, 100_000, 'memoryJobs.maxQueued')
  check(maxPerCaller, 1, maxQueued, 'memoryJobs.maxPerCaller')
  check(concurrency, 1, 1_000, 'memoryJobs.concurrency')
  check(maxKept, 0, 100_000, 'memoryJobs.maxKept')
  return new MemoryJobs(options)
}

function check(value: unknown, min: number, max: number, path: string): void {
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max))
    return
  throw invalid(path, value, `a whole number from ${min} to ${max}`)
}

function invalid(path: string, value: unknown, allowed: string): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

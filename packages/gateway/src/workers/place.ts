import cluster, { type Worker } from 'node:cluster'
import type { GatewayDocument } from '@catraca/config'
import { Restarts } from 'catraca/workers'
import { type Counts, errorOf, type FromWorker, isGatewayMessage, type Order, type ToWorker } from './messages.ts'

/** What a place tells of its processes. */
export interface PlaceEvents {
  /** What a process is to go by, asked when it is ready to hear it; undefined: to end. */
  order(): Order | undefined
  listening(): void
  /** Whole lines for requests. */
  lines(lines: string): void
  warning(line: string): void
  /** A process ended, which counted so much. */
  ended(counts: Counts | undefined): void
}

/** A place for one process of a gateway, one after the other. */
export class Place {
  listening = false
  /** What the process last told; undefined until it did. */
  counts: Counts | undefined
  private readonly attach: (worker: Worker) => void
  private readonly events: PlaceEvents
  private readonly restarts = new Restarts()
  private worker: Worker | undefined
  /** What the process was told to go by. */
  private document: GatewayDocument | undefined
  private listeningSinceMs = 0
  private timer: NodeJS.Timeout | undefined
  private kept = false
  private stopped = false
  /** Until the process listens: what waits for that. */
  private started: { resolve(port: number): void; reject(error: Error): void } | undefined
  /** Of the reload under way. */
  private reloaded: ((wrong: string | undefined) => void) | undefined

  /** @param attach Called with each process in the turn in which it is started. */
  constructor(attach: (worker: Worker) => void, events: PlaceEvents) {
    this.attach = attach
    this.events = events
  }

  /** Starts a process; resolves with its port when it listens, rejects with what is wrong. */
  start(): Promise<number> {
    const worker = cluster.fork()
    this.worker = worker
    this.attach(worker)
    worker.on('message', (message: unknown) => {
      if (isGatewayMessage(message)) this.hear(message as FromWorker)
    })
    worker.on('error', () => {})
    worker.on('exit', (code, signal) => this.ended(worker, signal ?? `code ${code}`))
    return new Promise((resolve, reject) => {
      this.started = { resolve, reject }
    })
  }

  /** Sees to it that there is a process, now and whenever one ends. */
  keep(): void {
    this.kept = true
    if (this.worker === undefined) this.again(0)
  }

  /** Lets the process go by another document; resolves with what is wrong with it when the process has taken it, or ended. */
  reload(document: GatewayDocument): Promise<string | undefined> {
    this.reloaded?.(undefined)
    this.document = document
    return new Promise((resolve) => {
      this.reloaded = resolve
      this.tell({ gateway: 'reload', document })
    })
  }

  tell(message: ToWorker): void {
    // What cannot be sent any more is for one that is ending.
    if (this.worker?.isConnected() === true) this.worker.send(message, undefined, () => {})
  }

  /** Ends the process for good, at once or after its running requests; resolves when it has ended. */
  async stop(atOnce: boolean): Promise<void> {
    this.stopped = true
    clearTimeout(this.timer)
    const { worker } = this
    if (worker === undefined) return
    const ended = new Promise<void>((resolve) => {
      worker.once('exit', () => resolve())
    })
    if (atOnce) worker.process.kill('SIGKILL')
    else this.tell({ gateway: 'stop' })
    await ended
  }

  private hear(message: FromWorker): void {
    switch (message.gateway) {
      case 'hello': {
        const order = this.stopped ? undefined : this.events.order()
        this.document = order?.document
        this.tell(order === undefined ? { gateway: 'stop' } : { gateway: 'start', order })
        break
      }
      case 'listening':
        this.listened(message.port)
        break
      case 'failed':
        this.started?.reject(errorOf(message.error))
        this.started = undefined
        break
      case 'counted':
        this.counts = message.counts
        break
      case 'reloaded':
        this.reloaded?.(message.wrong)
        this.reloaded = undefined
        break
      case 'lines':
        this.events.lines(message.lines)
        break
      default:
        this.events.warning(message.line)
    }
  }

  private listened(port: number): void {
    this.listening = true
    this.listeningSinceMs = performance.now()
    this.started?.resolve(port)
    this.started = undefined
    this.events.listening()
    // The document may have changed since the process was told one.
    const { document } = this.events.order() ?? {}
    if (document !== undefined && document !== this.document) void this.reload(document)
  }

  private ended(worker: Worker, how: string): void {
    const workedMs = this.listening ? performance.now() - this.listeningSinceMs : 0
    const { counts } = this
    this.worker = undefined
    this.listening = false
    this.counts = undefined
    this.reloaded?.(undefined)
    this.reloaded = undefined
    this.started?.reject(new Error(`a worker ended at its start (${how})`))
    this.started = undefined
    this.events.ended(counts)
    if (!this.kept || this.stopped) return
    const waitMs = this.restarts.nextMs(workedMs)
    const when = waitMs === 0 ? 'now' : `in ${waitMs / 1_000} s`
    this.events.warning(`worker ${worker.process.pid} ended (${how}); another one takes its place ${when}`)
    this.again(waitMs)
  }

  private again(waitMs: number): void {
    this.timer = setTimeout(() => {
      this.timer = undefined
      this.start().catch((error: Error) => this.events.warning(`a worker could not start: ${error.message}`))
    }, waitMs)
  }
}

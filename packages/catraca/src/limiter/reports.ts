import { onClockStep } from '../core/clock.ts'
import type { Decision } from '../core/decision.ts'
import { type DiagnosisCode, helpPage, show } from '../core/errors.ts'
import { Emitter, type EventName, type Events, eventNames, type Listener, type Listeners } from '../core/events.ts'
import { rejectUnknown } from '../core/parameters.ts'
import { optionInvalid } from './arguments.ts'

/** Used share from which `nearLimit` is emitted. */
const nearShare = 0.8

/** What a limiter tells its listeners. */
export class Reports {
  private readonly events = new Emitter()
  private readonly diagnosed = new Set<DiagnosisCode>()
  /** Called when the first listener of an event came or the last one went. */
  private readonly changed: () => void
  private stopClock: (() => void) | undefined

  constructor(changed: () => void) {
    this.changed = changed
  }

  /** True when somebody listens to decisions. */
  get decisions(): boolean {
    return this.events.has('decision') || this.events.has('nearLimit')
  }

  /** Adds listeners given as an option, which were checked. */
  addAll(listeners: Listeners): void {
    for (const [event, listener] of Object.entries(listeners)) {
      this.on(event as EventName, listener as Listener<EventName>)
    }
  }

  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    rejectUnknown(eventNames, { [event]: listener }, 'on')
    if (typeof listener !== 'function') throw optionInvalid(`on.${event}`, listener, 'a function')
    const stop = this.events.on(event, listener)
    this.changed()
    if (event === 'clock.step') {
      this.stopClock ??= onClockStep((stepMs) => this.events.emit('clock.step', { stepMs, source: 'clock' }))
    }
    return () => {
      stop()
      this.changed()
      if (!this.events.has('clock.step')) {
        this.stopClock?.()
        this.stopClock = undefined
      }
    }
  }

  emit<Name extends EventName>(name: Name, event: Events[Name]): void {
    this.events.emit(name, event)
  }

  /** A decision, and where one of its policies is near its limit. */
  decided(decision: Decision): void {
    this.events.emit('decision', { decision })
    if (!decision.allowed) return
    for (const { policy, limit, remaining } of decision.stack) {
      const usedShare = (limit - remaining) / limit
      if (usedShare >= nearShare) this.events.emit('nearLimit', { decision, policy, usedShare })
    }
  }

  /** A likely mistake: each code once. */
  diagnose(code: DiagnosisCode, message: string): void {
    if (this.diagnosed.has(code)) return
    this.diagnosed.add(code)
    this.events.emit('diagnosis', { code, help: helpPage(code), message })
  }

  emptyKey(limiter: string): void {
    this.diagnose(
      'CATRACA_KEY_EMPTY',
      `limiter ${show(limiter)} was asked about an empty key; all such callers share one limit`,
    )
  }

  close(): void {
    this.stopClock?.()
    this.events.clear()
  }
}

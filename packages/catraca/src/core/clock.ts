/**
 * The one file of the library that reads a clock or arms a timer.
 *
 * Time is whole microseconds since the epoch. It comes from the monotonic clock, anchored to the wall clock when the
 * module loads; when the two drift apart by more than a second the anchor moves, which is reported as a step.
 * When `Date.now` is not the function seen at load (fake timers), it alone is the clock.
 */

const wallNow = Date.now
/** Undefined when fake timers were installed before this module was loaded: then the monotonic clock is not believed. */
const nativeNow = /\[native code\]/.test(Function.prototype.toString.call(wallNow)) ? wallNow : undefined
const monotonicNow: () => number = performance.now.bind(performance)
const nextTurn = (globalThis as { setImmediate?: (run: () => void) => unknown }).setImmediate

const driftUs = 1_000_000
const checkEveryUs = 100_000
/** Two reads closer than this mean that many decisions share an event-loop turn. */
const closeUs = 50
/** One reading serves at most this many decisions. */
const maxUses = 16
/** A turn with at least this many decisions is busy, and so, it is assumed, is the next. */
const busyUses = 4

let anchorUs = wallNow() * 1_000 - Math.floor(monotonicNow() * 1_000)
let checkedUs = 0
let cachedUs = 0
let usesLeft = 0
let readsThisTurn = 0
let busy = false
let armed = false

const stepListeners = new Set<(stepMs: number) => void>()

/** Now, in whole microseconds since the epoch. Cost: about 5 ns from the cache of a busy turn, about 60 ns otherwise. */
export function nowUs(): number {
  if (Date.now !== nativeNow) return Math.floor(Date.now() * 1_000)
  if (usesLeft > 0) {
    usesLeft--
    return cachedUs
  }
  return read()
}

function read(): number {
  let us = anchorUs + Math.floor(monotonicNow() * 1_000)
  if (us - checkedUs > checkEveryUs) us = checkDrift(us)
  if (armed) {
    readsThisTurn++
    usesLeft = maxUses - 1
  } else if ((busy || us - cachedUs < closeUs) && nextTurn !== undefined) {
    armed = true
    readsThisTurn = 1
    usesLeft = maxUses - 1
    nextTurn(endTurn)
  }
  cachedUs = us
  return us
}

/** A reading serves from one check phase of the event loop to the next, at most {@link maxUses} times. */
function endTurn(): void {
  busy = readsThisTurn * maxUses - usesLeft >= busyUses
  usesLeft = 0
  armed = false
}

function checkDrift(us: number): number {
  checkedUs = us
  const stepUs = wallNow() * 1_000 - us
  if (Math.abs(stepUs) <= driftUs) return us
  anchorUs += stepUs
  checkedUs = us + stepUs
  for (const listener of stepListeners) listener(stepUs / 1_000)
  return checkedUs
}

/** Calls `listener` with the step in milliseconds when the wall clock was moved; returns the way to stop. */
export function onClockStep(listener: (stepMs: number) => void): () => void {
  stepListeners.add(listener)
  return () => stepListeners.delete(listener)
}

/**
 * Runs `task` once after `ms`; returns the way to cancel. Undefined without timers.
 *
 * @param keepsAlive True where the process must not end before.
 */
export function later(ms: number, task: () => void, keepsAlive = false): (() => void) | undefined {
  const timers = globalThis as unknown as {
    setTimeout?: (run: () => void, ms: number) => { unref?: () => void } | number
    clearTimeout?: (timer: unknown) => void
  }
  if (timers.setTimeout === undefined) return undefined
  const timer = timers.setTimeout(task, ms)
  if (typeof timer === 'object' && !keepsAlive) timer.unref?.()
  return () => timers.clearTimeout?.(timer)
}

/** Whole µs of a clock that never goes back, read anew each time. It says nothing about the time of day. */
export function monotonicUs(): number {
  return Math.floor(Date.now === nativeNow ? monotonicNow() * 1_000 : Date.now() * 1_000)
}

/** Milliseconds of the monotonic clock, for how long something takes. */
export function elapsedMs(): number {
  return monotonicNow()
}

/** Runs `task` once what has arrived by now was handled: after the next poll phase of the event loop. */
export function afterPoll(task: () => void): void {
  if (nextTurn === undefined) later(0, task)
  else nextTurn(task)
}

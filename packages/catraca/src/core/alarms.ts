import { later, monotonicUs, timerSource } from './clock.ts'

/**
 * All who sleep in this process share one timer: a heap of alarms, in the order of their times and, at one time, in the
 * order in which they were set. The timer is armed for the earliest and keeps the process alive while somebody sleeps.
 * Setting or cancelling one costs O(log n). A cancelled one lies in the heap until its time, or until half of them do.
 */
interface Alarm {
  readonly dueUs: number
  readonly turn: number
  /** Undefined once it rang or was cancelled. */
  run: (() => void) | undefined
  /** False once it has left the heap. */
  held: boolean
}

/** Longest time a timer can be armed for: a longer sleep goes on after it. */
const maxTimerMs = 2 ** 31 - 1

let heap: Alarm[] = []
let turns = 0
let cancelled = 0
let armedForUs = Infinity
let armedBy: unknown
let disarm: (() => void) | undefined

/**
 * Runs `task` once, `us` microseconds from now or as soon after as timers allow, never before: a timer is armed for whole
 * milliseconds, rounded up. Returns the way to cancel; a cancelled alarm keeps nobody alive.
 */
export function alarmAfter(us: number, task: () => void): () => void {
  const alarm: Alarm = { dueUs: monotonicUs() + us, turn: turns++, run: task, held: true }
  push(alarm)
  arm()
  return () => {
    if (alarm.run === undefined) return
    alarm.run = undefined
    if (!alarm.held) return
    cancelled++
    if (cancelled * 2 > heap.length) compact()
    arm()
  }
}

function ring(): void {
  disarm = undefined
  armedForUs = Infinity
  const nowUs = monotonicUs()
  // What a task sets now is of a later turn and waits for the next ring, even if it is due.
  const turn = turns
  const due: Alarm[] = []
  for (let first = heap[0]; first !== undefined && first.dueUs <= nowUs && first.turn < turn; first = heap[0]) {
    pop()
    if (first.run === undefined) cancelled--
    else due.push(first)
  }
  arm()
  for (const alarm of due) {
    // Undefined where one that rang before it cancelled it.
    const { run } = alarm
    alarm.run = undefined
    run?.()
  }
}

/** Arms the one timer for the earliest alarm that was not cancelled. */
function arm(): void {
  while (heap[0] !== undefined && heap[0].run === undefined) {
    pop()
    cancelled--
  }
  const first = heap[0]
  const source = timerSource()
  if (first === undefined) {
    disarm?.()
    disarm = undefined
    armedForUs = Infinity
    return
  }
  if (disarm !== undefined && armedForUs === first.dueUs && armedBy === source) return
  disarm?.()
  const ms = Math.ceil((first.dueUs - monotonicUs()) / 1_000)
  armedForUs = first.dueUs
  armedBy = source
  disarm = later(Math.min(maxTimerMs, Math.max(0, ms)), ring, true)
}

function compact(): void {
  const kept = heap.filter(({ run }) => run !== undefined)
  heap = []
  cancelled = 0
  for (const alarm of kept) push(alarm)
}

function push(alarm: Alarm): void {
  let at = heap.length
  heap.push(alarm)
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (!before(alarm, heap[parent] as Alarm)) break
    heap[at] = heap[parent] as Alarm
    at = parent
  }
  heap[at] = alarm
}

function pop(): void {
  if (heap[0] !== undefined) heap[0].held = false
  const last = heap.pop()
  const { length } = heap
  if (last === undefined || length === 0) return
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= length) break
    if (child + 1 < length && before(heap[child + 1] as Alarm, heap[child] as Alarm)) child++
    if (!before(heap[child] as Alarm, last)) break
    heap[at] = heap[child] as Alarm
    at = child
  }
  heap[at] = last
}

function before(a: Alarm, b: Alarm): boolean {
  return a.dueUs < b.dueUs || (a.dueUs === b.dueUs && a.turn < b.turn)
}

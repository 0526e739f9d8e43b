/**
 * The clock of the machine, whatever a drill does to that of this process. Imported before the library.
 *
 * An admission of a unit in hand says when it was made by the time of the store at the latest: from the sending of the
 * question that brought the unit, which may be long before the store charged it. Limits hold for when it was made. Of
 * that this process knows the instant of its monotonic clock, to the microsecond: when the question was sent, and how
 * long after it the decision was made. The store takes its time from the clock of this machine, which shows at that
 * instant what the monotonic one shows and an offset more.
 *
 * The offset is known from readings of both. One of a whole millisecond says that this has begun and has not ended, so
 * each reading gives a bound from either side; the closest of many are kept, some of which were made just before a
 * millisecond ended. With the upper bound an instant is never early, and late by the time between two readings, some
 * microseconds at most, which is less than any question takes to the store.
 */
const machineNow = Date.now
let mostUs = Infinity
let leastUs = -Infinity

/** Milliseconds by the clock of the machine. */
export function machineMs() {
  const before = performance.now()
  const ms = machineNow()
  mostUs = Math.min(mostUs, (ms + 1) * 1_000 - before * 1_000)
  leastUs = Math.max(leastUs, ms * 1_000 - performance.now() * 1_000)
  return ms
}

/** What is added to µs of the monotonic clock for what the clock of the machine shows, at the most. */
export function offsetUs() {
  return mostUs
}

/** True where the clock of the machine was moved meanwhile: then no instant is right. */
export function wasMoved() {
  return leastUs > mostUs
}

const spunMs = performance.now() + 10
while (performance.now() < spunMs) machineMs()

if (process.argv.includes('stepped-wall')) {
  let stepMs = 0
  process.on('message', ({ wallStepMs }) => {
    if (wallStepMs !== undefined) stepMs = wallStepMs
  })
  // A bound function has the text of a native one: the library must take it for a clock that moved, not for fake timers.
  const wallNow = () => machineNow() + stepMs
  Date.now = Function.prototype.bind.call(wallNow, undefined)
}

/** At most so much of what is late is sent at once. */
const burstMs = 20
/** How long it takes until the next part of what is late is sent. */
const pauseMs = 5

/**
 * Calls `send` with 0, 1, … at `rate` per second, each at its own time from the start: a pause of the process is caught
 * up in small parts and shifts nothing after it.
 * @param {object} options
 * @param {number} options.rate
 * @param {number} options.count
 * @param {(index: number) => void} options.send
 * @param {AbortSignal} options.signal Ends it early.
 * @param {() => number} [options.now] In milliseconds, never going back.
 * @returns {Promise<void>} Fulfilled when the last was sent.
 */
export function schedule({ rate, count, send, signal, now = () => performance.now() }) {
  const start = now()
  const atOnce = Math.max(1, Math.floor((rate * burstMs) / 1_000))
  let sent = 0
  return new Promise((resolve) => {
    function step() {
      if (signal.aborted) return resolve()
      const due = Math.min(count, 1 + Math.floor(((now() - start) * rate) / 1_000))
      const until = Math.min(due, sent + atOnce)
      while (sent < until) send(sent++)
      if (sent === count) return resolve()
      const waitMs = start + (sent * 1_000) / rate - now()
      setTimeout(step, waitMs > 0 ? waitMs : pauseMs)
    }
    signal.addEventListener('abort', () => resolve(), { once: true })
    step()
  })
}

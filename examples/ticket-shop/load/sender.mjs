import { Agent, request } from 'node:http'

const maxSockets = 50
const differentNumbers = 199

/** Sends requests and counts what became of them: every one has one outcome, a status or an error. */
export class Sender {
  sent = 0
  /** @type {Map<number, number>} */
  statuses = new Map()
  /** @type {Map<string, number>} */
  errors = new Map()
  #agent = new Agent({ keepAlive: true, maxSockets })
  #running = 0
  #whenIdle

  /** @param {ReturnType<typeof import('./options.mjs').parseOptions>} options */
  constructor(options) {
    this.options = options
  }

  /** Requests without an outcome. */
  get unanswered() {
    return this.#running
  }

  /** @param {number} index From 0. */
  send(index) {
    let isDone = false
    const done = (counts, key) => {
      if (isDone) return
      isDone = true
      counts.set(key, (counts.get(key) ?? 0) + 1)
      this.#running -= 1
      if (this.#running === 0) this.#whenIdle?.()
    }

    const { url, method, headers } = this.options
    const path = fill(this.options.path, index)
    const body = fill(this.options.body, index)
    // The hostname of an IPv6 address has brackets in a URL and none in a connection.
    const hostname = url.hostname.replace(/^\[|\]$/g, '')
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    this.sent += 1
    this.#running += 1
    const options = {
      agent: this.#agent,
      hostname,
      port: url.port || 80,
      method,
      path,
      headers: { ...headers, ...length },
    }
    const outgoing = request(options, (response) => {
      // An answer counts once it is complete; one that breaks off is an error.
      response.once('end', () => done(this.statuses, response.statusCode))
      response.once('error', (error) => done(this.errors, error.code))
      response.resume()
    })
    outgoing.once('error', (error) => done(this.errors, error.code))
    outgoing.once('close', () => done(this.errors, 'closed'))
    outgoing.end(body)
  }

  /**
   * Waits for the last answers.
   * @param {number} patienceMs
   * @param {AbortSignal} signal Ends the wait.
   */
  async idle(patienceMs, signal) {
    if (this.#running === 0 || signal.aborted) return
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, patienceMs)
      this.#whenIdle = () => {
        clearTimeout(timer)
        resolve()
      }
      signal.addEventListener('abort', this.#whenIdle, { once: true })
    })
  }
}

function fill(text, index) {
  return text?.replaceAll('{n}', String(1 + (index % differentNumbers)))
}

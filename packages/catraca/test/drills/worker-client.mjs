import { createHash } from 'node:crypto'
import { Cluster, Redis } from 'ioredis'

/** A client as an application would make it, that tries again soon. */
export function clientOf({ kind, ports, name }) {
  const nodes = ports.map((port) => ({ host: '127.0.0.1', port }))
  const again = () => 50
  const client =
    kind === 'cluster'
      ? new Cluster(nodes, { clusterRetryStrategy: again })
      : kind === 'sentinel'
        ? new Redis({ sentinels: nodes, name, retryStrategy: again, sentinelRetryStrategy: again })
        : new Redis({ ...nodes[0], retryStrategy: again })
  client.on('error', () => {})
  return client
}

export async function ready(client) {
  if (client.status !== 'ready') await new Promise((resolve) => client.once('ready', resolve))
}

const clock = 'local us = clock[1] * 1000000 + clock[2]'

/**
 * The client of a server whose clock is moved: the key `drill-clock` says by how much. Each script is sent in a form that
 * adds it to the time. Reading it in the script moves the clock for all processes between two decisions, as a real step.
 */
export function stepped(client) {
  const timed = new Map()
  return {
    get status() {
      return client.status
    },
    evalsha(sha, ...rest) {
      const own = timed.get(sha)
      // The text comes with the answer to this.
      return own === undefined ? Promise.reject(new Error('NOSCRIPT not seen yet')) : client.evalsha(own, ...rest)
    },
    eval(text, ...rest) {
      if (!text.includes(clock)) throw new Error('a script that does not read the clock as expected')
      const own = text.replaceAll(clock, `${clock} + (redis.call('GET', 'drill-clock') or 0)`)
      timed.set(sha1(text), sha1(own))
      return client.eval(own, ...rest)
    },
    connect: () => client.connect(),
    disconnect: (again) => client.disconnect(again),
    on: (event, listener) => client.on(event, listener),
    off: (event, listener) => client.off(event, listener),
  }
}

function sha1(text) {
  return createHash('sha1').update(text).digest('hex')
}

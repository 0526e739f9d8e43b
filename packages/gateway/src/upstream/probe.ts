import { connect } from 'node:net'
import type { Timeouts } from '../timeouts.ts'
import { failureOf } from './failure.ts'

/** Tries once whether anything takes connections at `origin`. Gives undefined, or what is wrong in words. */
export function probe(origin: string, timeouts: Timeouts): Promise<string | undefined> {
  const { hostname, port, protocol } = new URL(origin)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) || (protocol === 'https:' ? 443 : 80) })
    const end = (error?: unknown): void => {
      socket.destroy()
      resolve(error === undefined ? undefined : failureOf(error, timeouts).words)
    }
    socket.setTimeout(timeouts.connectMs, () => end({ code: 'ETIMEDOUT' }))
    socket.once('connect', () => end())
    socket.once('error', end)
  })
}

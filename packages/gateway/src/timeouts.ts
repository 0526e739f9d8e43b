import type { TimeoutsEntry } from '@catraca/config'
import { durationMs } from 'catraca/policy'

/** How long the gateway waits, in milliseconds. */
export interface Timeouts {
  /** For a connection to the upstream. */
  readonly connectMs: number
  /** For the head of the upstream's answer, from the moment the request was sent. */
  readonly responseMs: number
  /** For the next bytes of the upstream's answer while the caller takes them. */
  readonly bodyIdleMs: number
  /** For a caller who in the middle of a request neither sends nor reads. */
  readonly clientIdleMs: number
}

/** Longer waits than timers know are cut to it. */
const maxMs = 2 ** 31 - 1

/** The timeouts of a document, defaults filled in. */
export function timeoutsOf({
  connect = '1s',
  response = '5s',
  bodyIdle = '5s',
  clientIdle = '60s',
}: TimeoutsEntry = {}): Timeouts {
  const ms = (value: Parameters<typeof durationMs>[0]): number =>
    Math.min(maxMs, Math.max(1, Math.round(durationMs(value))))
  return { connectMs: ms(connect), responseMs: ms(response), bodyIdleMs: ms(bodyIdle), clientIdleMs: ms(clientIdle) }
}

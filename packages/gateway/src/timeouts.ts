/** How long the gateway waits, in milliseconds from 1 to 2^31 - 1. */
export interface Timeouts {
  /** For a connection to the upstream. Default 1000. */
  readonly connectMs: number
  /** For the head of the upstream's answer, from the moment the request was sent. Default 5000. */
  readonly responseMs: number
  /** For the next bytes of the upstream's answer while the caller takes them. Default 5000. */
  readonly bodyIdleMs: number
  /** For a caller who in the middle of a request neither sends nor reads. Default 60000. */
  readonly clientIdleMs: number
}

export const defaultTimeouts: Timeouts = {
  connectMs: 1_000,
  responseMs: 5_000,
  bodyIdleMs: 5_000,
  clientIdleMs: 60_000,
}

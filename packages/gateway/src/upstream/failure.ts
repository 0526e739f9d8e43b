import type { Timeouts } from '../timeouts.ts'

/** What is answered when the upstream gave no answer, or none that can be passed on. */
export interface Failure {
  readonly status: 400 | 502 | 504
  /** What happened, to follow the name of the upstream. */
  readonly words: string
}

/** The error's own code, such as `ECONNREFUSED`; where several attempts failed the code of them all. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** What to say of an error of the connection to the upstream. */
export function failureOf(error: unknown, timeouts: Timeouts): Failure {
  const code = codeOf(error)
  switch (code) {
    case 'UND_ERR_INVALID_ARG':
    case 'UND_ERR_NOT_SUPPORTED':
      return { status: 400, words: 'cannot be sent this request: a header or the path holds characters it must not' }
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return { status: 504, words: `did not accept a connection within ${seconds(timeouts.connectMs)}` }
    case 'UND_ERR_HEADERS_TIMEOUT':
      return { status: 504, words: `did not answer within ${seconds(timeouts.responseMs)}` }
    case 'UND_ERR_BODY_TIMEOUT':
      return { status: 504, words: `sent nothing more for ${seconds(timeouts.bodyIdleMs)}` }
    case 'ECONNREFUSED':
      return { status: 502, words: 'refused the connection' }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return { status: 502, words: 'cannot be found: its name has no address' }
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return { status: 502, words: 'closed the connection before its answer was complete' }
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return { status: 502, words: 'cannot be reached over the network' }
    default:
      return { status: 502, words: wordsOf(code) }
  }
}

function wordsOf(code: string): string {
  if (/^HPE_|^UND_ERR_(HEADERS_OVERFLOW|RES_)/.test(code)) return `sent an answer that is not valid HTTP (${code})`
  if (/CERT|TLS|SSL|SIGNATURE/.test(code)) return `cannot be trusted or understood over TLS (${code})`
  return code === '' ? 'failed' : `failed (${code})`
}

function seconds(ms: number): string {
  return `${ms / 1_000} s`
}

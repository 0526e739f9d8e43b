import { StoreFault } from '../remote.ts'

/** The server says that it cannot serve, whatever the key. */
const refusals = [
  'OOM',
  'LOADING',
  'CLUSTERDOWN',
  'READONLY',
  'MASTERDOWN',
  'BUSY',
  'MISCONF',
  'NOREPLICAS',
  'NOAUTH',
  'WRONGPASS',
  'NOPERM',
  'TRYAGAIN',
]
/** One key is unfit: of another type, or not written by us. */
const keyFaults = ['WRONGTYPE', 'CATRACA']

/** What an error of a client means for the store. An error that is not known counts as a refusal of the server. */
export function faultOf(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error
  const words = messageOf(error)
  // Errors inside a script come with a prefix in older servers.
  const code = codeOf(words)
  if (keyFaults.includes(code)) return new StoreFault('key', words, error)
  if (refusals.includes(code) || isReply(error)) return new StoreFault('refuses', words, error)
  return new StoreFault('gone', `the connection to the store failed: ${words}`, error)
}

/** True when the server does not know the script, which a restart or SCRIPT FLUSH makes it forget. */
export function isUnknownScript(error: unknown): boolean {
  return codeOf(messageOf(error)) === 'NOSCRIPT'
}

/** True when the server is a replica: the primary is another one by now. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(messageOf(error)) === 'READONLY'
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The first word of capitals, also behind "ERR Error running script …: @user_script:1: ". */
function codeOf(words: string): string {
  const inner = /(?:^|: -?|@user_script: ?\d+: -?)([A-Z]{3,})\b/.exec(words)?.[1] ?? ''
  if (inner !== 'ERR') return inner
  return /\b(?:WRONGTYPE|OOM|READONLY|LOADING|CATRACA|BUSY)\b/.exec(words)?.[0] ?? 'ERR'
}

/** An answer of the server, as against an error of the connection. */
function isReply(error: unknown): boolean {
  const { name, constructor } = error as { name?: string; constructor?: { name?: string } }
  return [name, constructor?.name].some((one) => one === 'ReplyError' || one === 'SimpleError' || one === 'ErrorReply')
}

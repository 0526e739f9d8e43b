import { alarmAfter } from '../core/alarms.ts'
import { sha256 } from '../core/sha256.ts'
import type { Facts } from '../policy/facts.ts'
import type { KeptAnswer, ReadyAnswer } from '../policy/verdict.ts'
import type { AnswerCache, CachedAnswer } from './answer-cache.ts'
import { limitFieldNames } from './dialects.ts'
import type { GuardRequest } from './request.ts'

/** Request fields that choose among forms of one answer; they are part of the key, so answers may vary by them. */
const chosenBy = ['accept', 'accept-encoding', 'accept-language', 'origin'] as const
/** How long a refusal waits for a copy, in µs. */
const patienceUs = 250_000
/**
 * Request fields from which services make links, or another request, without a word in `Vary`. They are part of the key:
 * nobody can have an answer kept for others that goes by what it wrote there.
 */
const madeFrom = [
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-original-url',
  'x-rewrite-url',
  'x-http-method-override',
] as const
/** Fields of a connection, of the moment, or of the limits: a copy gets its own. */
const notKept = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'trailer',
  'content-length',
  'date',
  'age',
  'retry-after',
  'catraca-answer',
  ...limitFieldNames,
])

/**
 * The key of a request for copies of its answer; undefined for one that gets none. A copy is given to nobody but the
 * caller it was made for: who is verified by the guard has copies of its own, for each credential, since the service may
 * know more than one behind it. A request with credentials or cookies of which the guard knows nothing has none, nor has
 * one with a body. Those of nobody in particular are shared by all who show nothing.
 */
export function keptKey(
  request: GuardRequest,
  { identity, credential }: Pick<Facts, 'identity' | 'credential'>,
): string | undefined {
  const { method, target } = request
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (request.header('range') !== undefined || request.header('cookie') !== undefined) return undefined
  if ((request.header('content-length') ?? '0') !== '0' || request.header('transfer-encoding') !== undefined) {
    return undefined
  }
  const { client, user, tenant, plan } = identity ?? {}
  const known = client !== undefined || user !== undefined || tenant !== undefined
  const shown = [request.header('authorization'), request.header('x-api-key'), credential]
  const shows = shown.some((one) => one !== undefined)
  if (!known && shows) return undefined
  const forms = [...chosenBy, ...madeFrom].map((name) => request.header(name) ?? '')
  const secret = shows ? sha256(JSON.stringify(shown)) : ''
  return JSON.stringify([client, user, tenant, plan, secret, request.header('host') ?? '', target, ...forms])
}

/** True for a key under which several have their copies: all who show nothing, or all of a tenant. */
function isCommon(key: string): boolean {
  return key.startsWith('[null,null,')
}

/** True for an answer of which a copy may be given later. */
function mayKeep({ status, fields }: KeptAnswer, key: string): boolean {
  if (status !== 200) return false
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    if (lower === 'set-cookie') return false
    if (lower === 'cache-control' && forbidsCopies(value, isCommon(key))) return false
    if (lower === 'vary' && !value.split(',').every((one) => chosen(one.trim().toLowerCase()))) return false
  }
  return true
}

/** What is `private` is one caller's; `no-cache` is not to be given again unasked. Either may name fields behind it. */
function forbidsCopies(cacheControl: string, common: boolean): boolean {
  return cacheControl.split(',').some((directive) => {
    const [name = ''] = directive.trim().toLowerCase().split('=', 1)
    return name === 'no-store' || name === 'no-cache' || (common && name === 'private')
  })
}

function chosen(name: string): boolean {
  return name === '' || (chosenBy as readonly string[]).includes(name)
}

/** Keeps a copy of an answer where one may be kept. Nothing waits for it, and no failure of the cache is anybody's. */
export function keep(cache: AnswerCache, key: string, answer: KeptAnswer, nowMs: number): void {
  if (!mayKeep(answer, key) || answer.body.length > cache.maxBodyBytes) return
  const age = answer.fields.find(([name]) => name.toLowerCase() === 'age')?.[1]
  const seconds = age !== undefined && /^\d{1,9}$/.test(age) ? Number(age) : 0
  const fields = answer.fields.filter(([name]) => !notKept.has(name.toLowerCase()))
  try {
    const kept = cache.set(key, { ...answer, fields, madeAtMs: nowMs - seconds * 1_000 })
    if (kept instanceof Promise) kept.catch(() => {})
  } catch {
    // A copy that is not kept is missed by nobody.
  }
}

/**
 * The copy under a key that is at most `maxAgeMs` old, ready to be sent; undefined when there is none, or the cache takes
 * longer than 250 ms: a refusal must not depend on it.
 */
export function copyOf(
  cache: AnswerCache,
  key: string,
  maxAgeMs: number,
  nowMs: number,
): ReadyAnswer | undefined | Promise<ReadyAnswer | undefined> {
  try {
    const found = cache.get(key)
    if (!(found instanceof Promise)) return readyCopy(found, maxAgeMs, nowMs)
    return new Promise((resolve) => {
      const cancel = alarmAfter(patienceUs, () => resolve(undefined))
      const read = found.then((late) => readyCopy(late, maxAgeMs, nowMs)).catch(() => undefined)
      void read.then(resolve).finally(cancel)
    })
  } catch {
    return undefined
  }
}

function readyCopy(found: CachedAnswer | null | undefined, maxAgeMs: number, nowMs: number): ReadyAnswer | undefined {
  if (!found) return undefined
  const ageMs = Math.max(0, nowMs - found.madeAtMs)
  if (ageMs > maxAgeMs) return undefined
  const fields = found.fields.flatMap(([name, value]) => [name, value])
  return { status: found.status, fields: [...fields, 'Age', String(Math.floor(ageMs / 1_000))], body: found.body }
}

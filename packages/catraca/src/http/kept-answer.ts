import type { Identity } from '../policy/facts.ts'
import type { KeptAnswer, ReadyAnswer } from '../policy/verdict.ts'
import type { AnswerCache, CachedAnswer } from './answer-cache.ts'
import { limitFieldNames } from './dialects.ts'
import type { GuardRequest } from './request.ts'

/** Request fields that choose among forms of one answer; they are part of the key, so answers may vary by them. */
const chosenBy = ['accept', 'accept-encoding', 'accept-language', 'origin'] as const
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
 * caller it was made for: who is verified by the guard has copies of its own, and a request with credentials or cookies of
 * which the guard knows nothing has none.
 */
export function keptKey(request: GuardRequest, identity: Identity | undefined): string | undefined {
  const { method } = request
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (request.header('range') !== undefined) return undefined
  const { client, user, tenant } = identity ?? {}
  const known = client !== undefined || user !== undefined || tenant !== undefined
  if (request.header('cookie') !== undefined) return undefined
  if (!known && (request.header('authorization') ?? request.header('x-api-key')) !== undefined) return undefined
  const forms = chosenBy.map((name) => request.header(name) ?? '')
  return JSON.stringify([client, user, tenant, request.header('host') ?? '', request.target, ...forms])
}

/** True for an answer of which a copy may be given later. */
function mayKeep({ status, fields }: KeptAnswer): boolean {
  if (status !== 200) return false
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    if (lower === 'set-cookie') return false
    if (lower === 'cache-control' && /(?:^|,)\s*no-store\s*(?:,|$)/i.test(value)) return false
    if (lower === 'vary' && !value.split(',').every((one) => chosen(one.trim().toLowerCase()))) return false
  }
  return true
}

function chosen(name: string): boolean {
  return name === '' || (chosenBy as readonly string[]).includes(name)
}

/** Keeps a copy of an answer where one may be kept. Nothing waits for it, and no failure of the cache is anybody's. */
export function keep(cache: AnswerCache, key: string, answer: KeptAnswer, nowMs: number): void {
  if (!mayKeep(answer) || answer.body.length > cache.maxBodyBytes) return
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

/** The copy under a key that is at most `maxAgeMs` old, ready to be sent; undefined when there is none. */
export function copyOf(
  cache: AnswerCache,
  key: string,
  maxAgeMs: number,
  nowMs: number,
): ReadyAnswer | undefined | Promise<ReadyAnswer | undefined> {
  const ready = (found: CachedAnswer | undefined): ReadyAnswer | undefined => readyCopy(found, maxAgeMs, nowMs)
  try {
    const found = cache.get(key)
    return found instanceof Promise ? found.then(ready, () => undefined) : ready(found)
  } catch {
    return undefined
  }
}

function readyCopy(found: CachedAnswer | undefined, maxAgeMs: number, nowMs: number): ReadyAnswer | undefined {
  if (found === undefined) return undefined
  const ageMs = Math.max(0, nowMs - found.madeAtMs)
  if (ageMs > maxAgeMs) return undefined
  const fields = found.fields.flatMap(([name, value]) => [name, value])
  return { status: found.status, fields: [...fields, 'Age', String(Math.floor(ageMs / 1_000))], body: found.body }
}

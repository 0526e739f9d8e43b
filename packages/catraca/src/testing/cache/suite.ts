import type { AnswerCache, CachedAnswer } from '../../http/answer-cache.ts'
import { createGuard } from '../../http/guard.ts'
import type { GuardRequest } from '../../http/request.ts'
import type { DeclareTest } from '../adapter/app.ts'
import { equal, eventually } from '../check.ts'

/** A fresh, empty cache. */
export interface CacheScene {
  readonly cache: AnswerCache
  close(): void | Promise<void>
}

/** Keys as a guard makes them, and some that are harder to store: no two are one. */
const keys = [
  '[null,null,null,null,"","a.test","/","","",""]',
  '["acme",null,null,"pro","","a.test","/","","",""]',
  '["acme",null,null,"pro","","a.test","/?a=1&b=2","","",""]',
  '["ACME",null,null,"pro","","a.test","/","","",""]',
  'a',
  'A',
  'a:b',
  '{a}',
  'a b',
  'a\nb',
  'é',
  'e\u0301',
  '💧',
  '__proto__',
  'constructor',
  `${'x'.repeat(10_000)}1`,
  `${'x'.repeat(10_000)}2`,
]

const madeAtMs = 1_800_000_000_123

function answerOf(text: string): CachedAnswer {
  return { status: 200, fields: [['X-Name', text]], body: bytesOf(text), madeAtMs }
}

/** Of plain letters, one each. */
function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0))
}

/** A copy as plain data; undefined where there is none. */
function plain(answer: CachedAnswer | null | undefined): unknown {
  if (!answer) return undefined
  const { status, fields, body, madeAtMs: made } = answer
  return { status, fields, body: [...body], madeAtMs: made }
}

/**
 * Tests that a cache of answers keeps its contract: what was kept comes back byte for byte under its key and no other, the
 * last one kept counts, and a guard answers an excess with it. A cache may forget at any time, but not at once: what was
 * just kept in an empty one is there. About ten tests; they say nothing about how much it keeps.
 *
 * @param test Declares a test: `test` of vitest, `node:test`, jest.
 */
export function cacheSuite(test: DeclareTest, start: () => Promise<CacheScene>): void {
  const declare = (name: string, run: (cache: AnswerCache) => Promise<void>): void => {
    test(name, async () => {
      const scene = await start()
      try {
        await run(scene.cache)
      } finally {
        await scene.close()
      }
    })
  }
  /** Keeps a copy; nobody in a guard waits for it, so it may take a moment until it is there. */
  const keep = async (cache: AnswerCache, key: string, answer: CachedAnswer): Promise<void> => {
    await cache.set(key, answer)
    await eventually(async () => plain(await cache.get(key)), plain(answer), `the copy under ${key.slice(0, 60)}`)
  }

  declare('cache: there is no copy of what was never kept', async (cache) => {
    for (const key of keys) equal(plain(await cache.get(key)), undefined, `the copy under ${key.slice(0, 60)}`)
  })

  declare('cache: a copy comes back as it was kept', async (cache) => {
    const fields: [string, string][] = [
      ['Content-Type', 'text/plain; charset=utf-8'],
      ['Link', '</a>; rel=next'],
      ['link', '</b>; rel=prev'],
      ['X-Empty', ''],
      ['ETag', 'W/"1"'],
      ['X-Latin', 'caf\u00e9'],
    ]
    await keep(cache, 'a', { status: 200, fields, body: Uint8Array.from({ length: 256 }, (_, n) => n), madeAtMs })
  })

  declare('cache: an answer without a body or fields is one', async (cache) => {
    await keep(cache, 'a', { status: 200, fields: [], body: new Uint8Array(0), madeAtMs })
  })

  declare('cache: it says how long a body may be, and keeps one as long', async (cache) => {
    const { maxBodyBytes } = cache
    equal(
      Number.isSafeInteger(maxBodyBytes) && maxBodyBytes > 0,
      true,
      `maxBodyBytes ${maxBodyBytes} is a whole number`,
    )
    const body = new Uint8Array(Math.min(maxBodyBytes, 1_048_576)).fill(7)
    await cache.set('a', { status: 200, fields: [], body, madeAtMs })
    await eventually(async () => (await cache.get('a'))?.body.length, body.length, 'the length of the longest body')
  })

  declare('cache: the last copy under a key counts', async (cache) => {
    await keep(cache, 'a', answerOf('first'))
    await keep(cache, 'a', answerOf('second'))
    await keep(cache, 'a', { ...answerOf('third'), madeAtMs: madeAtMs - 5_000 })
  })

  declare('cache: no two keys are one', async (cache) => {
    for (const [at, key] of keys.entries()) await keep(cache, key, answerOf(String(at)))
    for (const [at, key] of keys.entries()) {
      const found = plain(await cache.get(key))
      // It may have made room for others.
      if (found !== undefined) equal(found, plain(answerOf(String(at))), `the copy under ${key.slice(0, 60)}`)
    }
  })

  declare('cache: many kept at once come back each under its own key, or not at all', async (cache) => {
    const names = Array.from({ length: 200 }, (_, index) => `["client-${index}"]`)
    await Promise.all(names.map(async (name) => cache.set(name, answerOf(name))))
    const found = await Promise.all(names.map(async (name) => cache.get(name)))
    for (const [at, name] of names.entries()) {
      const copy = plain(found[at])
      if (copy !== undefined) equal(copy, plain(answerOf(name)), `the copy under ${name}`)
    }
  })

  declare('cache: a copy is not changed by who gave or got it', async (cache) => {
    const answer = answerOf('mine')
    await keep(cache, 'a', answer)
    const got = await cache.get('a')
    const sent = [...(got?.fields ?? []), ['Age', '1']]
    equal(sent.length, 2, 'fields that were sent')
    equal(plain(await cache.get('a')), plain(answerOf('mine')), 'the copy afterwards')
  })

  declare('cache: a guard answers an excess with a copy of the same caller, and of no other', async (cache) => {
    const rule = { algorithm: 'fixed-window', limit: 1, window: '1d' }
    const guard = createGuard<string>({
      policies: { version: 1, policies: { all: { per: 'service', rule, overflow: [{ stale: { maxAge: '1h' } }] } } },
      identify: (client) => ({ client }),
      cache,
    })
    const request = (client: string): GuardRequest<string> => {
      return { method: 'GET', target: '/events', peer: '192.0.2.1', raw: client, header: () => undefined }
    }
    try {
      const first = await guard.ask(request('ana'))
      equal(first.answer, 'pass', 'the first answer')
      first.keep?.({ status: 200, fields: [['Content-Type', 'text/plain']], body: bytesOf('events') })
      await eventually(async () => (await guard.ask(request('ana'))).answer, 'stale', 'the answer to the same caller')
      const { status, body } = guard.answerOf(await guard.ask(request('ana')))
      equal([status, String.fromCharCode(...(body as Uint8Array))], [200, 'events'], 'the copy')
      equal((await guard.ask(request('bob'))).answer, 'reject', 'the answer to another caller')
    } finally {
      guard.close()
    }
  })
}

import type { PolicyDocument, PolicyEntry } from 'catraca/policy'
import { describe, expect, test, vi } from 'vitest'
import { type Ask, ask, askAll, type Heard, kinds, ownTime, pass, rest, start, statusesOf, until } from './servers.ts'

const bucket = (limit: number, burst: number, window = '1s') => ({ algorithm: 'token-bucket', limit, window, burst })
const keys = { a: { client: 'acme' }, b: { client: 'bravo' } }

function documentOf(
  rule: PolicyEntry['rule'],
  overflow: PolicyEntry['overflow'],
  more: Partial<PolicyEntry> = {},
): PolicyDocument {
  const policy: PolicyEntry = { per: 'client', rule, ...(overflow !== undefined && { overflow }), ...more }
  return { version: 1, trust: { proxies: 0 }, policies: { client: policy } }
}

/** Sends requests at once; the clock stands still until all were answered or wait. */
async function burst(url: string, count: number, options: Ask = { key: 'a' }): Promise<Heard[]> {
  const heard: Heard[] = []
  for (let index = 0; index < count; index++) {
    // Who still waits at the end of a test that failed is cut off.
    ask(url, '/', options).then(
      (answer) => heard.push(answer),
      () => {},
    )
  }
  await rest(150)
  return heard
}

function waitsOf(heard: readonly Heard[], from: number): number[] {
  const waited = heard.filter(({ headers }) => headers['catraca-answer'] === 'queue')
  return waited.map(({ atMs }) => atMs - from).toSorted((a, b) => a - b)
}

const t = (): number => Date.now() - Date.UTC(2026, 9, 17, 12)

describe.each(kinds)('an excess, on %s', (kind) => {
  test.each([
    ['acceptance 136', 10, 90, 100, [90, 2, 8], [100, 200], 10],
    ['acceptance 137', 20, 20, 30, [20, 4, 6], [50, 100, 150, 200], 10],
    ['acceptance 137', 100, 20, 60, [20, 20, 20], Array.from({ length: 20 }, (_, n) => 10 * (n + 1)), 10],
  ] as const)(
    '%s: %d per second, bursts of %d, %d at once',
    async (_, rate, size, count, [now, later, never], waits, step) => {
      ownTime()
      const app = await start(kind, {
        policies: documentOf(bucket(rate, size), [{ queue: { maxWait: '200ms' } }, 'reject']),
        keys,
        random: () => 0,
      })
      const from = t()
      const heard = await burst(app.url, count)
      await until(() => heard.length === now + never, 'the answers at once')
      expect(statusesOf(heard)).toEqual({ 200: now, 429: never })
      // The first who is refused would have waited one place longer than the last who waits.
      const shortest = Math.min(
        ...heard.filter(({ status }) => status === 429).map(({ json }) => json['retryAfterMs'] as number),
      )
      expect(shortest).toBe(Math.ceil((((waits.at(-1) ?? 0) * (later + 1)) / later) * 1.1))
      await pass(250, step)
      await until(() => heard.length === count, 'those who wait')
      expect(waitsOf(heard, from)).toEqual(waits)
    },
  )

  test('acceptance 138: sustained abuse fills the queue and is refused again', async () => {
    ownTime()
    const run = async (overflow: PolicyEntry['overflow']): Promise<[all: number, late: number]> => {
      const app = await start(kind, { policies: documentOf(bucket(10, 20), overflow), keys })
      const refused: number[] = []
      let answered = 0
      for (let index = 0; index < 400; index++) {
        void ask(app.url, '/', { key: 'a' }).then(({ status }) => {
          answered++
          if (status === 429) refused.push(index)
        })
        await until(() => app.calls.length + refused.length >= Math.min(index, 20), 'the first')
        await rest(12)
        await vi.advanceTimersByTimeAsync(25)
      }
      await pass(500, 50)
      await until(() => answered === 400, 'all answers')
      return [refused.length, refused.filter((index) => index >= 200).length]
    }
    expect(await run([{ queue: { maxWait: '200ms' } }, 'reject'])).toEqual([279, 150])
    expect(await run(['reject'])).toEqual([281, 150])
  })

  test('acceptance 139: each who waits has a place from the first moment, in order, and sleeps once', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf(bucket(20, 1), [{ queue: { maxWait: '200ms' } }, 'reject']),
      keys,
    })
    const from = t()
    const heard = await burst(app.url, 6)
    await until(() => heard.length === 2, 'the first and the sixth')
    expect(statusesOf(heard)).toEqual({ 200: 1, 429: 1 })
    // Who comes now comes behind them, also with the next unit that comes back.
    await pass(49)
    expect((await ask(app.url, '/', { key: 'a' })).status).toBe(429)
    await pass(151, 50)
    await pass(50)
    await until(() => heard.length === 6, 'those who wait')
    const waits = waitsOf(heard, from)
    expect(waits.length).toBe(4)
    for (const [place, ms] of waits.entries())
      expect(ms).toSatisfy((value: number) => value >= 50 * (place + 1) && value < 50 * (place + 2))
    expect(app.calls.length).toBe(5)
  })

  test('acceptance 140: a copy of 5 s answers where 10 s are allowed, one of 11 s does not', async () => {
    ownTime()
    let version = 0
    const app = await start(kind, {
      policies: documentOf(bucket(1, 1, '1h'), [{ stale: { maxAge: '10s' } }, 'reject']),
      keys,
      handler: () => ({ body: `version ${++version}`, headers: { 'content-type': 'text/plain', 'x-own': 'kept' } }),
    })
    expect((await ask(app.url, '/events?page=1', { key: 'a' })).text).toBe('version 1')
    await pass(5_000)
    const stale = await ask(app.url, '/events?page=1', { key: 'a' })
    expect([stale.status, stale.text, stale.headers['x-own']]).toEqual([200, 'version 1', 'kept'])
    expect(stale.headers).toMatchObject({ age: '5', 'catraca-answer': 'stale', ratelimit: '"client";r=0;t=3595' })
    const head = await ask(app.url, '/events?page=1', { key: 'a', method: 'HEAD' })
    expect([head.status, head.text, head.headers['age']]).toEqual([200, '', '5'])
    // Nobody else gets it.
    expect((await ask(app.url, '/events?page=1', { key: 'b' })).text).toBe('version 2')
    await pass(6_000)
    expect((await ask(app.url, '/events?page=1', { key: 'a' })).status).toBe(429)
    expect(app.calls.length).toBe(2)
  })

  test('acceptance 141: a search without derived fields marks itself, and costs less', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf(bucket(1, 6, '1h'), [{ degrade: { cost: 1 } }, 'reject'], { cost: 5 }),
      keys,
      handler: ({ told }) => ({
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(told === 'degrade' ? { degraded: true, items: [1] } : { items: [1], similar: [2] }),
      }),
    })
    const full = await ask(app.url, '/search', { key: 'a' })
    expect([full.json, full.headers['catraca-answer']]).toEqual([{ items: [1], similar: [2] }, undefined])
    const less = await ask(app.url, '/search', { key: 'a' })
    expect([less.status, less.json, less.headers['catraca-answer']]).toEqual([
      200,
      { degraded: true, items: [1] },
      'degrade',
    ])
    expect([full, less].map(({ headers }) => /r=(\d+)/.exec(String(headers['ratelimit']))?.[1])).toEqual(['1', '0'])
    expect((await ask(app.url, '/search', { key: 'a' })).status).toBe(429)
    // Nobody can ask for it: what a caller writes there does not arrive.
    const forged = await ask(app.url, '/search', { key: 'b', headers: { 'catraca-answer': 'degrade' } })
    expect(forged.json).toEqual({ items: [1], similar: [2] })
  })

  test('acceptance 142: an import is accepted, can be asked for, and is done; a full line refuses', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf(bucket(1, 1, '10s'), ['accept', 'reject']),
      keys,
      jobs: { maxQueued: 2, maxPerCaller: 2 },
    })
    const post = (items: number): Promise<Heard> =>
      ask(app.url, '/import', { method: 'POST', key: 'a', body: { items } })
    expect((await post(1)).status).toBe(200)
    const accepted = await post(2)
    expect([accepted.status, accepted.json['state'], accepted.headers['catraca-answer']]).toEqual([
      202,
      'queued',
      'accept',
    ])
    const where = String(accepted.headers['location'])
    expect(where).toBe(`/jobs/${String(accepted.json['id'])}`)
    expect([(await post(3)).status, (await post(4)).status]).toEqual([202, 429])
    // Asking costs nothing.
    for (const { json } of await askAll(app.url, where, 3, { key: 'a' })) expect(json['state']).toBe('queued')
    await pass(10_100, 100)
    await until(() => app.calls.length === 2, 'the work')
    await pass(20, 10)
    const done = (await ask(app.url, where)).json
    expect(done).toMatchObject({ state: 'done', result: { status: 200, body: 'ok' } })
    expect(app.calls.map(({ body }) => body)).toEqual([{ items: 1 }, { items: 2 }])
    expect((await ask(app.url, `/jobs/${'0'.repeat(32)}`)).status).toBe(404)
  })

  test('acceptance 143: where no cheaper form exists it is refused', async () => {
    ownTime()
    const app = await start(kind, { policies: documentOf(bucket(1, 1, '1h'), ['reject']), keys })
    expect(statusesOf(await askAll(app.url, '/', 4, { key: 'a' }))).toEqual({ 200: 1, 429: 3 })
  })

  test('marked requests pass, and the service is told', async () => {
    ownTime()
    const app = await start(kind, { policies: documentOf(bucket(1, 1, '1h'), ['mark']), keys })
    const heard = await askAll(app.url, '/', 3, { key: 'a' })
    expect(heard.map(({ status, headers }) => [status, headers['catraca-answer']])).toEqual([
      [200, undefined],
      [200, 'mark'],
      [200, 'mark'],
    ])
    expect(app.calls.map(({ told }) => told)).toEqual([undefined, 'mark', 'mark'])
  })

  test('acceptance 145: the burst passes at once, then one each interval until the longest wait', async () => {
    ownTime()
    const app = await start(kind, {
      policies: documentOf(bucket(20, 20), [{ queue: { maxWait: '1s' } }, 'reject']),
      keys,
    })
    const from = t()
    const heard = await burst(app.url, 50)
    await until(() => heard.length === 30, 'the answers at once')
    expect(statusesOf(heard)).toEqual({ 200: 20, 429: 10 })
    await pass(1_050, 50)
    await until(() => heard.length === 50, 'those who wait')
    expect(waitsOf(heard, from)).toEqual(Array.from({ length: 20 }, (_, index) => 50 * (index + 1)))
  })

  test('acceptance 146: the first answer of a list that applies is taken, and each is counted by its name', async () => {
    ownTime()
    const overflow: PolicyEntry['overflow'] = [
      { queue: { maxWait: '10ms' } },
      { stale: { maxAge: '1m' } },
      { degrade: { cost: 1 } },
      'accept',
      'reject',
    ]
    const app = await start(kind, {
      policies: documentOf(bucket(60, 6, '1h'), overflow, { cost: 5 }),
      keys,
      jobs: { maxQueued: 1 },
    })
    const answers: string[] = []
    const note = ({ status, headers }: Heard): void => void answers.push(String(headers['catraca-answer'] ?? status))
    note(await ask(app.url, '/a', { key: 'a' }))
    // One unit is left: a copy of /a, less of /b, work of a POST, and nothing else.
    note(await ask(app.url, '/a', { key: 'a' }))
    note(await ask(app.url, '/b', { key: 'a' }))
    note(await ask(app.url, '/b', { key: 'a' }))
    note(await ask(app.url, '/c', { key: 'a', method: 'POST', body: { n: 1 } }))
    note(await ask(app.url, '/c', { key: 'a', method: 'POST', body: { n: 2 } }))
    // A unit comes back each minute: five are there for the work after five minutes, and for another request after ten.
    await pass(599_995, 100_000)
    const waiting = ask(app.url, '/d', { key: 'a' })
    await rest()
    await pass(20, 5)
    note(await waiting)
    expect(answers).toEqual(['200', 'stale', 'degrade', '429', 'accept', '429', 'queue'])
    expect(app.counts().policies['client']?.answers).toEqual({ stale: 1, degrade: 1, accept: 1, reject: 2, queue: 1 })
    expect(app.counts().answers).toMatchObject({
      pass: 1,
      queue: 1,
      stale: 1,
      degrade: 1,
      accept: 1,
      mark: 0,
      reject: 2,
    })
  })
})

describe.each(kinds)('modes, on %s', (kind) => {
  const strict = bucket(1, 1, '1h')

  test('acceptance 168: observed nobody is refused, and just those are counted who would be', async () => {
    ownTime()
    const run = async (mode: 'observe' | 'enforce') => {
      const app = await start(kind, { policies: documentOf(strict, undefined, { mode }), keys })
      const heard = [...(await askAll(app.url, '/', 5, { key: 'a' })), ...(await askAll(app.url, '/', 3, { key: 'b' }))]
      return { statuses: statusesOf(heard), ...app.counts().policies['client'] }
    }
    const enforced = await run('enforce')
    const observed = await run('observe')
    expect([enforced.statuses, observed.statuses]).toEqual([{ 200: 2, 429: 6 }, { 200: 8 }])
    expect([enforced.refused, observed.refused, observed.wouldRefuse]).toEqual([6, 0, 6])
    expect(observed.wouldRefuseIs).toBe('exact')
  })

  test('acceptance 170: strangers and dear routes are limited, the rest is observed, in one process', async () => {
    ownTime()
    const app = await start(kind, {
      policies: {
        version: 1,
        policies: {
          anonymous: { match: { identity: 'anonymous' }, per: 'address', rule: strict },
          dear: { match: { identity: 'client', routes: ['POST /import'] }, per: 'client', rule: strict },
          client: { match: { identity: 'client' }, per: 'client', rule: strict, mode: 'observe' },
        },
      },
      keys,
    })
    const statuses = [
      statusesOf(await askAll(app.url, '/import', 3, { key: 'a', method: 'POST', body: {} })),
      statusesOf(await askAll(app.url, '/', 3, { key: 'b' })),
      statusesOf(await askAll(app.url, '/', 3)),
    ]
    expect(statuses).toEqual([{ 200: 1, 429: 2 }, { 200: 3 }, { 200: 1, 429: 2 }])
    expect(app.counts().policies['client']).toMatchObject({ refused: 0, wouldRefuse: 4, wouldRefuseIs: 'estimate' })
  })

  test('acceptance 172: for a part of all and some clients, changed while requests go on', async () => {
    ownTime()
    const names = Array.from({ length: 100 }, (_, index) => `k${index}`)
    const clients = Object.fromEntries(names.map((name) => [name, { client: name }]))
    const at = (mode: PolicyEntry['mode']): PolicyDocument =>
      documentOf(strict, undefined, mode === undefined ? {} : { mode })
    const app = await start(kind, { policies: at('observe'), keys: clients })
    const round = async (): Promise<string[]> => {
      const heard = await Promise.all(names.map((key) => ask(app.url, '/', { key })))
      return names.filter((_, index) => heard[index]?.status === 429)
    }
    expect([await round(), await round()]).toEqual([[], []])
    app.setPolicies(at({ enforce: { percent: 20, clients: ['k7'] } }))
    const some = await round()
    expect(some).toContain('k7')
    expect(some.length).toSatisfy((count: number) => count >= 5 && count <= 40)
    expect(await round()).toEqual(some)
    app.setPolicies(at({ enforce: { percent: 60, clients: ['k7'] } }))
    const more = await round()
    expect(some.filter((name) => !more.includes(name))).toEqual([])
    expect(more.length).toBeGreaterThan(some.length)
    app.setPolicies(at('enforce'))
    expect(await round()).toEqual(names)
    const { keys: counts, policies } = app.counts()
    expect(counts['id-k7']).toEqual({ passed: 2, refused: 4 })
    expect(policies['client']?.refused).toBe(2 * some.length + more.length + 100)
  })

  test('a client with 7 of 10 used has 3 left after 20 changes under a load, and no request failed', async () => {
    ownTime()
    const rule = bucket(10, 10, '1h')
    const app = await start(kind, {
      policies: documentOf(rule, undefined),
      keys: { a: { client: 'acme' }, b: { client: 'bravo' } },
    })
    await askAll(app.url, '/', 7, { key: 'a' })
    const sending = { on: true }
    const load = async (): Promise<Heard[]> => {
      const heard: Heard[] = []
      while (sending.on) heard.push(await ask(app.url, '/', { key: 'b' }))
      return heard
    }
    const loads = Array.from({ length: 8 }, load)
    const modes: PolicyEntry['mode'][] = ['observe', 'enforce', { enforce: { percent: 50 } }, 'enforce']
    for (let change = 0; change < 20; change++) {
      app.setPolicies(documentOf(rule, undefined, { mode: modes[change % 4] as NonNullable<PolicyEntry['mode']> }))
      await rest(30)
    }
    sending.on = false
    const heard = (await Promise.all(loads)).flat()
    expect(heard.length).toBeGreaterThan(100)
    expect(heard.every(({ status }) => status === 200 || status === 429)).toBe(true)
    expect(statusesOf(await askAll(app.url, '/', 6, { key: 'a' }))).toEqual({ 200: 3, 429: 3 })
  })
})

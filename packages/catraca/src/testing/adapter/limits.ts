import { equal, like } from '../check.ts'
import { type Declare, guardOf, names, simple } from './scene.ts'

/** One limit: what it counts, what every answer says, what stands where it is made. */
export function limitTests(declare: Declare): void {
  declare('one limit: passes up to it, then 429, and every answer says what it is', async ({ scene, driver }) => {
    await scene.start([simple()])
    const first = await scene.get('/decision')
    equal([first.status, first.body], [200, '1'], 'the first answer, with what its handler saw')
    equal(first.headers['ratelimit-policy'], '"default";q=2;w=3600', 'RateLimit-Policy')
    equal(first.headers['ratelimit'], '"default";r=1;t=3600', 'RateLimit')
    equal((await scene.get()).headers['ratelimit'], '"default";r=0;t=3600', 'RateLimit of the last one')
    const { status, headers, body } = await scene.get()
    equal(status, 429, 'the status past the limit')
    equal(headers['cache-control'], 'no-store', 'Cache-Control of a refusal')
    const [type] = (headers['content-type'] ?? '').split(';')
    equal(type, driver.refusalType ?? 'application/problem+json', 'Content-Type of a refusal')
    like(headers['ratelimit'], /^"default";r=0;t=\d+$/, 'RateLimit of a refusal')
    like(headers['retry-after'], /^[1-9]\d*$/, 'Retry-After of a refusal')
    const problem = JSON.parse(body) as Record<string, unknown>
    equal([problem['status'], problem['violated-policies']], [429, ['default']], 'the body of a refusal')
    equal(scene.reached, 2, 'calls of handlers')
  })

  const told: readonly (readonly [path: string, status: number])[] = [
    ['/', 200],
    ['/created', 201],
    ['/empty', 204],
    ['/fresh', 304],
    ['/missing', 404],
    ['/throws', 500],
    ['/down', 503],
  ]
  for (const [path, status] of told) {
    declare(`the limit is told with an answer of ${status}`, async ({ scene, driver }) => {
      await scene.start([simple()])
      const { status: found, headers } = await scene.get(path)
      const tells = status !== 500 || driver.answersErrors !== false
      equal([found, headers['ratelimit']], [status, tells ? '"default";r=1;t=3600' : undefined], 'status and RateLimit')
    })
  }

  declare('what the handler sets stays', async ({ scene }) => {
    await scene.start([simple()])
    const { headers } = await scene.get('/created')
    equal(headers['x-own'], 'kept', 'a field of its own')
    like(headers['content-type'], /^text\/plain/, 'its Content-Type')
  })

  declare('a route that nobody declared is limited where its limits see it', async ({ scene, driver }) => {
    await scene.start([simple()])
    const seen = driver.seesUnknownRoutes !== false
    equal(await scene.statuses(3, '/nowhere'), seen ? [404, 404, 429] : [404, 404, 404], 'statuses')
    equal(scene.reached, 0, 'calls of handlers')
  })

  declare('HEAD is counted as GET, refused without a body, and the connection goes on', async ({ scene }) => {
    await scene.start([simple({ limit: 1 })])
    const wire = scene.wire()
    wire.send('HEAD', '/')
    equal((await wire.receive('HEAD')).status, 200, 'HEAD within the limit')
    wire.send('HEAD', '/')
    equal((await wire.receive('HEAD')).status, 429, 'HEAD past the limit')
    wire.send('GET', '/')
    const { status, body } = await wire.receive()
    equal([status, (JSON.parse(body) as { status: unknown }).status], [429, 429], 'GET on the same connection')
  })

  declare('key: whom to count; an empty one is the address', async ({ scene, header }) => {
    await scene.start([simple({ key: header('x-user') })])
    equal(await scene.statuses(3, '/', { 'x-user': 'a' }), [200, 200, 429], 'one caller')
    equal(await scene.statuses(3, '/', { 'x-user': 'b' }), [200, 200, 429], 'another one')
    equal(await scene.statuses(2, '/', { 'x-user': '' }), [200, 200], 'an empty key')
    equal(await scene.statuses(1), [429], 'no key')
  })

  declare('skip: neither counted nor told', async ({ scene, header }) => {
    const skips = header('x-skip')
    await scene.start([simple({ skip: (request) => skips(request) === '1' })])
    equal(await scene.statuses(4, '/', { 'x-skip': '1' }), [200, 200, 200, 200], 'skipped requests')
    const { headers, body } = await scene.get('/decision', { 'x-skip': '1' })
    equal([headers['ratelimit'], body], [undefined, 'none'], 'what is told of a skipped one')
    equal(await scene.statuses(3), [200, 200, 429], 'the others')
  })

  declare('cost: units instead of one; a wrong one is an error of the request', async ({ scene, header }) => {
    const cost = header('x-cost')
    await scene.start([simple({ limit: 10, cost: (request) => Number(cost(request) ?? 1) })])
    equal(await scene.statuses(1, '/', { 'x-cost': '9' }), [200], 'nine units')
    equal(await scene.statuses(1, '/', { 'x-cost': '2' }), [429], 'two more')
    for (const wrong of ['0', '-1', '1.5', 'x']) {
      equal(await scene.statuses(1, '/', { 'x-cost': wrong }), [500], `a cost of ${wrong}`)
    }
    equal(scene.reached, 1, 'calls of handlers')
    equal(await scene.statuses(2), [200, 429], 'what is left')
  })

  declare('an error of key is an error of the request', async ({ scene }) => {
    const key = (): string => {
      throw new Error('a mistake in key')
    }
    await scene.start([simple({ key })])
    equal([(await scene.get()).status, scene.reached], [500, 0], 'status and calls of handlers')
  })

  declare('routes: other numbers, and none', async ({ scene }) => {
    await scene.start([simple({ routes: { 'POST /json': { limit: 1, window: '15m' }, 'GET /other': false } })])
    const post = async () => (await scene.ask('POST', '/json', json({}))).status
    equal([await post(), await post()], [200, 429], 'the route with numbers of its own')
    equal(await scene.statuses(3, '/other'), [200, 200, 200], 'the route without a limit')
    equal(await scene.statuses(3), [200, 200, 429], 'all others')
  })

  declare('trust: the address behind proxies', async ({ scene }) => {
    await scene.start([simple({ trust: { proxies: 1 } })])
    equal(await scene.statuses(3, '/', { 'x-forwarded-for': '192.0.2.1' }), [200, 200, 429], 'one caller')
    equal(await scene.statuses(1, '/', { 'x-forwarded-for': '192.0.2.1, 192.0.2.2' }), [200], 'another one')
  })

  declare('mistakes are found where the limit is made', async ({ driver, scene }) => {
    const guard = guardOf(driver, { a: { per: 'address', rule: { algorithm: 'gcra', limit: 1, window: '1m' } } })
    const wrong = [
      simple({ cost: 0 }),
      simple({ key: 'x' as never }),
      simple({ settle: 'x' }),
      simple({ windw: 1 } as object),
      { what: guard, mount: { cost: 0 } },
      { what: guard, mount: { skip: 1 } },
      { what: guard, mount: { settle: 1 } },
      { what: guard, mount: { key: 1 } },
      // The options of one limit stand together.
      { ...simple(), mount: { skip: () => true } },
      // A guard of another copy of the library is no guard here.
      { what: { ask: () => {}, answerOf: () => {} } as never },
      ...[undefined, null, 'x', 7].map((what) => ({ what: what as never })),
    ]
    for (const [index, limit] of wrong.entries()) {
      const code = await scene.start([limit]).then(
        () => 'none',
        (error: { code?: string }) => error.code,
      )
      like(code, /^CATRACA_(?:OPTION_INVALID|OPTION_UNKNOWN|COST_INVALID)$/, `the error of mistake ${index}`)
    }
  })

  declare(
    'an outer and an inner limit are told in one list each; a refusal is told alone',
    async ({ scene, driver }) => {
      const rule = { algorithm: 'gcra', limit: 9, window: '1h' }
      const guard = guardOf(driver, { innermost: { per: 'address', rule } })
      await scene.start([simple({ limit: 9, name: 'outer' }), simple({ name: 'inner' }), { what: guard }])
      const { headers } = await scene.get()
      equal(names(headers['ratelimit']), ['outer', 'inner', 'innermost'], 'RateLimit')
      equal(names(headers['ratelimit-policy']), ['outer', 'inner', 'innermost'], 'RateLimit-Policy')
      equal((await scene.get('/decision')).body, '7', 'the decision that the handler sees: the innermost')
      const refused = await scene.get()
      equal(refused.status, 429, 'past the inner limit')
      like(names(refused.headers['ratelimit']).join(), /^(?:outer,)?inner$/, 'RateLimit of the refusal')
      equal(scene.reached, 2, 'calls of handlers')
    },
  )

  declare('a limit learns what an outer one said', async ({ scene, driver }) => {
    const policies = { inner: { per: 'address', rule: { algorithm: 'gcra', limit: 9, window: '1h' } } }
    const guard = guardOf(driver, policies)
    const seen: unknown[] = []
    Object.assign(guard, { sawBefore: ({ policy }: { policy: string }) => seen.push(policy) })
    await scene.start([simple({ name: 'outer' }), { what: guard }])
    await scene.get()
    equal(seen, ['outer'], 'what was seen')
  })

  for (const bytes of [10_000, 5_000_000]) {
    declare(
      `a refusal is seen by a caller who sends a body of ${bytes} bytes that nobody reads`,
      async ({ scene, driver }) => {
        await scene.start([simple({ limit: 1 })])
        await scene.get()
        const wire = scene.wire()
        wire.send('POST', '/', { body: 'x'.repeat(bytes), headers: { 'Content-Type': 'text/plain' } })
        const { status, headers, body } = await wire.receive()
        equal([status, (JSON.parse(body) as { status: unknown }).status], [429, 429], 'the refusal')
        if (bytes > 64 * 1024 && driver.drainsBodies !== true) {
          equal(headers['connection'], 'close', 'Connection of the refusal')
          equal((await wire.over())?.message, undefined, 'how the connection ends')
          return
        }
        wire.send('GET', '/')
        equal((await wire.receive()).status, 429, 'the next answer of the connection')
      },
    )
  }
}

/** A body of JSON, and what says so. */
export function json(value: unknown): { body: string; headers: Record<string, string> } {
  return { body: JSON.stringify(value), headers: { 'Content-Type': 'application/json' } }
}

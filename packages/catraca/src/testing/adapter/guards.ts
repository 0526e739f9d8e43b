import { equal, eventually, like } from '../check.ts'
import { json } from './limits.ts'
import { type Declare, guardOf, type Stage } from './scene.ts'

const bucket = (limit: number) => ({ algorithm: 'token-bucket', limit, window: '1h' })
const perClient = {
  anonymous: { match: { identity: 'anonymous' as const }, per: 'address', rule: bucket(3) },
  client: { match: { identity: 'client' as const }, per: 'client', rule: bucket(2) },
}

/** A policy document: its stages, and what becomes of a request that does not go on. */
export function guardTests(declare: Declare): void {
  for (const when of ['at once', 'later']) {
    declare(`a guard counts who is identified ${when}`, async ({ scene, driver, header }) => {
      const found = clientIn(header)
      const identify = (request: never) => (when === 'later' ? Promise.resolve(found(request)) : found(request))
      await scene.start([{ what: guardOf(driver, perClient, { identify }) }])
      const first = await scene.get('/decision', { 'x-api-key': 'a' })
      equal([first.status, first.body], [200, '1'], 'the first answer')
      equal(first.headers['ratelimit'], '"client";r=1;t=3600', 'RateLimit')
      equal(await scene.statuses(2, '/', { 'x-api-key': 'a' }), [200, 429], 'one client')
      equal(await scene.statuses(3, '/', { 'x-api-key': 'b' }), [200, 200, 429], 'another one')
      equal(await scene.statuses(4), [200, 200, 200, 429], 'nobody')
      equal(scene.reached, 7, 'calls of handlers')
    })
  }

  declare('skip and cost of a guard stand where it is mounted', async ({ scene, driver, header }) => {
    const [skips, costs] = [header('x-skip'), header('x-cost')]
    const mount = {
      skip: (request: never) => skips(request) === '1',
      cost: (request: never) => Number(costs(request) ?? 1),
    }
    await scene.start([{ what: guardOf(driver, perClient), mount }])
    equal(await scene.statuses(4, '/', { 'x-skip': '1' }), [200, 200, 200, 200], 'skipped requests')
    equal(await scene.statuses(1, '/', { 'x-cost': '0' }), [500], 'a wrong cost')
    equal(await scene.statuses(2, '/', { 'x-cost': '2' }), [200, 429], 'two units')
    equal(scene.reached, 5, 'calls of handlers')
  })

  declare('an exempt request is told of no limit', async ({ scene, driver }) => {
    const policies = { version: 1 as const, exempt: { routes: ['GET /decision'] }, policies: perClient }
    await scene.start([{ what: guardOf(driver, {}, { policies }) }])
    const { status, headers, body } = await scene.get('/decision')
    equal([status, headers['ratelimit'], body], [200, undefined, 'none'], 'status, RateLimit and decision')
  })

  declare('what is over for everybody is 503, and says when to come back', async ({ scene, driver }) => {
    await scene.start([{ what: guardOf(driver, { all: { per: 'service', rule: bucket(1) } }) }])
    equal((await scene.get()).status, 200, 'within the limit')
    const { status, headers } = await scene.get()
    equal([status, headers['cache-control']], [503, 'no-store'], 'past the limit')
    like(headers['retry-after'], /^[1-9]\d*$/, 'Retry-After')
    equal(scene.reached, 1, 'calls of handlers')
  })

  for (const how of ['throws', 'rejects']) {
    declare(`an identify that ${how} is an error of the request`, async ({ scene, driver }) => {
      const identify = (): Promise<undefined> => {
        const error = new Error('the directory is down')
        if (how === 'throws') throw error
        return Promise.reject(error)
      }
      await scene.start([{ what: guardOf(driver, perClient, { identify }) }])
      equal(await scene.statuses(2), [500, 500], 'statuses')
      equal(scene.reached, 0, 'calls of handlers')
    })
  }

  declare('a caller who leaves while it is identified is neither served nor charged', async ({ scene, driver }) => {
    let asked = 0
    let found: (identity: { client: string }) => void = () => {}
    const identify = (): Promise<{ client: string }> => {
      asked++
      return new Promise((resolve) => {
        found = resolve
      })
    }
    const policies = { ...perClient, flight: flight(1) }
    const guard = guardOf(driver, policies, { identify })
    await scene.start([{ what: guard }])
    const wire = scene.wire()
    wire.send('GET', '/', { headers: { 'x-api-key': 'a' } })
    await eventually(() => asked, 1, 'calls of identify')
    await scene.leave()
    found({ client: 'a' })
    await eventually(() => left(guard, 'flight'), 1, 'permits left')
    equal(await left(guard, 'client', 'a'), 2, 'units left')
    equal(scene.reached, 0, 'calls of handlers')
  })

  declare('policies that look into the body see it parsed', async ({ scene, driver }) => {
    const holds = { match: { routes: ['POST /json'] }, per: 'body:eventId', rule: bucket(1) }
    await scene.start([{ what: guardOf(driver, { holds }) }])
    const post = (eventId: unknown) => scene.ask('POST', '/json', json({ eventId }))
    const first = await post(7)
    equal([first.status, first.body], [200, '{"eventId":7}'], 'the first answer: the handler has the body too')
    equal(first.headers['ratelimit'], '"holds";r=0;t=3600', 'RateLimit')
    equal((await post('7')).status, 429, 'the same event')
    equal((await post(8)).status, 200, 'another one')
    equal(scene.reached, 2, 'calls of handlers')
  })

  declare('a malformed body is 400, and nothing is left held', async ({ scene, driver }) => {
    const holds = { match: { routes: ['POST /json'] }, per: 'body:eventId', rule: bucket(9) }
    const guard = guardOf(driver, { holds, flight: flight(2) })
    await scene.start([{ what: guard }])
    const bad = { body: '{"eventId":', headers: { 'Content-Type': 'application/json' } }
    for (let index = 0; index < 4; index++) equal((await scene.ask('POST', '/json', bad)).status, 400, 'its status')
    await eventually(() => left(guard, 'flight'), 2, 'permits left')
  })

  declare('a caller who leaves before its body came leaves nothing held', async ({ scene, driver }) => {
    const holds = { match: { routes: ['POST /json'] }, per: 'body:eventId', rule: bucket(9) }
    const guard = guardOf(driver, { holds, flight: flight(2) })
    await scene.start([{ what: guard }])
    const wire = scene.wire()
    wire.send('POST', '/json', { body: '{', headers: { 'Content-Type': 'application/json', 'Content-Length': '99' } })
    // The other connection is served after the first was read.
    equal((await scene.ask('POST', '/json', json({}))).status, 200, 'the next request')
    wire.close()
    await eventually(() => left(guard, 'flight'), 2, 'permits left')
    equal(scene.reached, 1, 'calls of handlers')
  })
}

/** At most this many requests at once. */
export function flight(limit: number) {
  return { per: 'address', rule: { algorithm: 'concurrency', limit, permitTtl: '1h' } } as const
}

/** What a policy of a guard has left for the caller of the suite. */
export async function left(guard: ReturnType<typeof guardOf>, policy: string, client?: string): Promise<number> {
  const attributes = { address: '127.0.0.1', ...(client !== undefined && { client }) }
  const said = await guard.explain({ method: 'POST', path: '/json', attributes })
  return said.find((one) => one.policy === policy)?.says.remaining ?? -1
}

function clientIn(header: Stage['header']): (request: never) => { client: string } | undefined {
  const key = header('x-api-key')
  return (request) => {
    const client = key(request)
    return client === undefined ? undefined : { client }
  }
}

import { equal, eventually, pause } from '../check.ts'
import { flight, left } from './guards.ts'
import { type Declare, guardOf, simple } from './scene.ts'

/** What follows when an answer is over: permits come back, and what was charged becomes what it really cost. */
export function endingTests(declare: Declare): void {
  declare('permits are held while the handler works and come back with its answer', async ({ scene, driver }) => {
    const guard = guardOf(driver, { flight: flight(1) })
    await scene.start([{ what: guard }])
    const slow = scene.get('/slow')
    await eventually(() => scene.reached, 1, 'calls of handlers')
    equal(await left(guard, 'flight'), 0, 'permits left inside')
    equal((await scene.get()).status, 429, 'another request meanwhile')
    scene.open()
    equal((await slow).status, 200, 'the answer')
    await eventually(() => left(guard, 'flight'), 1, 'permits left')
    equal(await scene.statuses(3), [200, 200, 200], 'one after the other')
    for (const path of ['/empty', '/fresh', '/throws', '/missing', '/nowhere']) {
      await scene.get(path)
      await eventually(() => left(guard, 'flight'), 1, `permits left after ${path}`)
    }
    await scene.ask('HEAD', '/')
    await eventually(() => left(guard, 'flight'), 1, 'permits left after HEAD')
  })

  declare('permits come back when the caller leaves while the handler works', async ({ scene, driver }) => {
    const guard = guardOf(driver, { flight: flight(1) })
    await scene.start([{ what: guard }])
    const wire = scene.wire()
    wire.send('GET', '/slow')
    await eventually(() => scene.reached, 1, 'calls of handlers')
    equal(await left(guard, 'flight'), 0, 'permits left inside')
    wire.close()
    await eventually(() => left(guard, 'flight'), 1, 'permits left')
  })

  declare('permits are held until the last part of a stream', async ({ scene, driver }) => {
    const guard = guardOf(driver, { flight: flight(1) })
    await scene.start([{ what: guard }])
    const wire = scene.wire()
    wire.send('GET', '/stream')
    await wire.head()
    equal(await wire.chunk(), 'one', 'the first part, before the second was made')
    await pause(20)
    equal(await left(guard, 'flight'), 0, 'permits left in the middle')
    scene.open()
    equal([await wire.chunk(), await wire.chunk()], ['two', ''], 'the rest')
    await eventually(() => left(guard, 'flight'), 1, 'permits left')
  })

  declare('permits come back when the caller leaves in the middle of a stream', async ({ scene, driver }) => {
    const guard = guardOf(driver, { flight: flight(1) })
    await scene.start([{ what: guard }])
    const wire = scene.wire()
    wire.send('GET', '/stream')
    await wire.head()
    await wire.chunk()
    equal(await left(guard, 'flight'), 0, 'permits left in the middle')
    wire.close()
    await eventually(() => left(guard, 'flight'), 1, 'permits left')
  })

  declare('permits come back when a stream breaks', async ({ scene, driver }) => {
    const guard = guardOf(driver, { flight: flight(1) })
    await scene.start([{ what: guard }])
    const wire = scene.wire()
    wire.send('GET', '/breaks')
    await wire.head()
    await wire.chunk()
    scene.open()
    await wire.over()
    await eventually(() => left(guard, 'flight'), 1, 'permits left')
  })

  declare('settle: counts only failures', async ({ scene, driver }) => {
    const settle = (_: never, response: never) => (driver.status(response) < 400 ? 0 : 1)
    const remaining = async () => (await scene.get('/decision')).body
    await scene.start([simple({ limit: 5, settle })])
    for (const path of ['/', '/created', '/empty', '/stream']) {
      scene.open()
      const wire = scene.wire()
      wire.send('GET', path)
      await wire.head()
      scene.open()
      if (path === '/stream')
        equal([await wire.chunk(), await wire.chunk(), await wire.chunk()], ['one', 'two', ''], path)
      await eventually(remaining, '4', `left beside this one, after ${path}`)
    }
    await scene.get('/missing')
    await eventually(remaining, '3', 'left beside this one, after a failure')
    await scene.get('/throws')
    await eventually(remaining, '2', 'left beside this one, after an error')
  })

  declare('settle: less than was charged, and as charged', async ({ scene, header }) => {
    const cost = header('x-really')
    const settle = (request: never) => (cost(request) === undefined ? undefined : Number(cost(request)))
    await scene.start([simple({ limit: 100, cost: 10, settle })])
    const remaining = async () => (await scene.get('/decision', { 'x-really': '0' })).body
    await scene.get('/', { 'x-really': '4' })
    await eventually(remaining, '86', 'left beside this one, after four units')
    await scene.get('/')
    await eventually(remaining, '76', 'left beside this one, after ten units')
  })

  declare('settle of a guard: gives all back, or leaves it', async ({ scene, driver }) => {
    const settle = (_: never, response: never) => (driver.status(response) < 400 ? 0 : undefined)
    const rule = { algorithm: 'token-bucket', limit: 3, window: '1h' }
    const guard = guardOf(driver, { login: { per: 'address', rule } })
    await scene.start([{ what: guard, mount: { settle } }])
    for (let index = 0; index < 5; index++) {
      equal((await scene.get()).status, 200, 'a success')
      await eventually(() => left(guard, 'login'), 3, 'units left after a success')
    }
    equal(await scene.statuses(4, '/missing'), [404, 404, 404, 429], 'failures')
    equal(await left(guard, 'login'), 0, 'units left')
  })

  declare(
    'settle is called once for each answer that was sent, for no refusal and no broken one',
    async ({ scene }) => {
      let calls = 0
      const settle = () => {
        calls++
        return undefined
      }
      await scene.start([simple({ limit: 4, settle })])
      await scene.get()
      await eventually(() => calls, 1, 'calls of settle after an answer')
      const gone = scene.wire()
      gone.send('GET', '/slow')
      await eventually(() => scene.reached, 2, 'calls of handlers')
      await scene.leave()
      const broken = scene.wire()
      broken.send('GET', '/breaks')
      await broken.head()
      await broken.chunk()
      scene.open()
      await broken.over()
      await scene.get()
      equal((await scene.get()).status, 429, 'past the limit')
      await pause(20)
      equal(calls, 2, 'calls of settle after all')
    },
  )

  for (const [how, settle] of [
    [
      'throws',
      () => {
        throw new Error('a mistake in settle')
      },
    ],
    ['gives -1', () => -1],
    ['gives 0.5', () => 0.5],
    ['gives NaN', () => Number.NaN],
    ['gives a text', () => '0'],
  ] as const) {
    declare(`a settle that ${how} leaves the charge, and the server goes on`, async ({ scene }) => {
      await scene.start([simple({ settle })])
      equal(await scene.statuses(3), [200, 200, 429], 'statuses')
    })
  }
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, ask, expectProblem, type Service, start } from './helpers.ts'

let service: Service
beforeAll(async () => {
  service = await start('order')
})
afterAll(() => service.stop())

const post = (path: string, body: unknown): Promise<Answer> => ask(service.url + path, 'POST', body)

describe('orders', () => {
  test('are made, shown and charged once', async () => {
    const made = await post('/orders', { holdId: 'h' })
    expect(made.status).toBe(201)
    expect(made.body).toMatchObject({ orderId: expect.any(String), holdId: 'h', status: 'created' })
    const orderId = String(made.body['orderId'])
    expect(made.headers.get('location')).toBe(`/orders/${orderId}`)
    expect((await ask(`${service.url}/orders/${orderId}`)).body).toEqual(made.body)

    const charges = await Promise.all([post('/charges', { orderId }), post('/charges', { orderId })])
    expect(new Set(charges.map(({ status }) => status))).toEqual(new Set([201, 409]))
    const charged = charges.find(({ status }) => status === 201)
    expect(charged?.body).toEqual({ chargeId: expect.any(String), orderId, status: 'charged' })
    expect((await ask(`${service.url}/orders/${orderId}`)).body).toMatchObject({
      status: 'charged',
      chargeId: charged?.body['chargeId'],
    })
    expectProblem(await post('/charges', { orderId }), 409)
  })

  test.each([
    ['/orders', { holdId: 7 }, 422],
    ['/orders', { holdId: '' }, 422],
    ['/charges', { orderId: 'x'.repeat(201) }, 422],
    ['/charges', { orderId: 'none' }, 404],
    ['/login', { user: 'ana' }, 422],
  ])('refuses at %s %j', async (path, body, status) => {
    expectProblem(await post(path, body), status)
  })

  test('does not know others', async () => {
    expectProblem(await ask(`${service.url}/orders/none`), 404)
  })
})

describe('a login', () => {
  test.each([
    ['ana', 'turnstile'],
    ['bruno', 'box-office'],
    ['carla', 'front-row'],
  ])('of %s is answered 204', async (user, password) => {
    const { status, body } = await post('/login', { user, password })
    expect({ status, body }).toEqual({ status: 204, body: {} })
  })

  test.each([
    ['ana', 'box-office'],
    ['nobody', 'turnstile'],
    ['__proto__', 'x'],
  ])('of %s with %s is refused, whoever it is', async (user, password) => {
    const answer = await post('/login', { user, password })
    expectProblem(answer, 401)
    expect(answer.body['detail']).toBe('User or password is wrong.')
  })
})

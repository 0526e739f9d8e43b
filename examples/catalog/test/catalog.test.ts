import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const child = fork(fileURLToPath(new URL('../server.mjs', import.meta.url)), {
  env: { ...process.env, PORT: '0' },
  stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
})
let origin = ''

beforeAll(async () => {
  const [message] = (await once(child, 'message')) as [{ ready: string }]
  origin = message.ready
})

afterAll(async () => {
  const ended = once(child, 'exit')
  child.kill()
  await ended
})

const get = async (path: string): Promise<{ status: number; type: string | null; body: Record<string, unknown> }> => {
  const response = await fetch(origin + path)
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    body: (await response.json()) as Record<string, unknown>,
  }
}

describe('the example catalog', () => {
  test('lists 200 events in ten pages', async () => {
    const seen: number[] = []
    let next: unknown = '/events'
    while (typeof next === 'string') {
      const { status, body } = await get(next)
      expect(status).toBe(200)
      seen.push(...(body['items'] as { id: number }[]).map(({ id }) => id))
      next = body['next']
    }
    expect(seen).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
  })

  test('shows one event, the same every time', async () => {
    const { status, type, body } = await get('/events/7')
    expect({ status, type }).toEqual({ status: 200, type: 'application/json' })
    expect(body).toEqual({
      id: 7,
      title: 'Book fair under the stars',
      city: 'Recife',
      venue: 'Bridge Theatre',
      startsAt: '2027-01-14T19:00:00.000Z',
      priceCents: 6_000,
      seatsLeft: 41,
    })
  })

  test.each([
    ['/events/0', 404],
    ['/events/201', 404],
    ['/elsewhere', 404],
    ['/events?page=11', 400],
    ['/events?page=x', 400],
  ])('answers %s with a problem', async (path, status) => {
    const answer = await get(path)
    expect(answer).toMatchObject({ status, type: 'application/problem+json', body: { status } })
  })

  test('answers other methods with 405', async () => {
    const response = await fetch(`${origin}/events`, { method: 'DELETE' })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET, HEAD')
  })
})

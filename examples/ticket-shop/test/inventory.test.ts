import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Holds } from '../lib/holds.mjs'
import { type Answer, ask, expectProblem, type Service, start } from './helpers.ts'

async function startInventory(): Promise<{
  service: Service
  hold: (body: unknown) => Promise<Answer>
  count: () => Promise<unknown>
}> {
  const service = await start('inventory')
  onTestFinished(async () => void (await service.stop()))
  return {
    service,
    hold: (body) => ask(`${service.url}/api/holds`, 'POST', body),
    count: async () => (await ask(`${service.url}/api/holds/count`)).body,
  }
}

describe('the inventory', () => {
  test('takes seats until none are left', async () => {
    const { hold, count } = await startInventory()
    const first = await hold({ eventId: 7 })
    expect(first.status).toBe(201)
    expect(first.body).toEqual({
      holdId: expect.any(String),
      eventId: 7,
      seats: 1,
      seatsLeft: 99,
      expiresAt: expect.stringMatching(/Z$/),
    })
    const others = await Promise.all(Array.from({ length: 9 }, () => hold({ eventId: 7, seats: 10 })))
    expect(others.map(({ status }) => status)).toEqual(Array(9).fill(201))
    expectProblem(await hold({ eventId: 7, seats: 10 }), 409)
    expect((await hold({ eventId: 7, seats: 9 })).body).toMatchObject({ seatsLeft: 0 })
    expectProblem(await hold({ eventId: 7, seats: 1 }), 409)
    expect((await hold({ eventId: 8, seats: 1 })).body).toMatchObject({ seatsLeft: 99 })
    expect(await count()).toEqual({ calls: 14, held: 101 })
  })

  test.each([
    [{ eventId: '7' }, 422],
    [{ eventId: 1.5 }, 422],
    [{ seats: 1 }, 422],
    [{ eventId: 7, seats: 0 }, 422],
    [{ eventId: 7, seats: 11 }, 422],
    [{ eventId: 7, seats: null }, 422],
    [{ eventId: 0 }, 404],
    [{ eventId: 201 }, 404],
  ])('refuses %j', async (body, status) => {
    const { hold, count } = await startInventory()
    expectProblem(await hold(body), status)
    expect(await count()).toEqual({ calls: 1, held: 0 })
  })

  test('prints how many calls reached it', async () => {
    const { service, hold } = await startInventory()
    await Promise.all(Array.from({ length: 20 }, () => hold({ eventId: 7 })))
    await vi.waitFor(() => expect(service.printed()).toMatch(/^inventory: \d+ calls reached it\n/), { timeout: 10_000 })
    await hold('')
    await service.stop()
    const lines = service.printed().trimEnd().split('\n')
    expect(lines.at(-1)).toBe('inventory: 21 calls reached it')
    expect(new Set(lines).size).toBe(lines.length)
  })
})

describe('holds', () => {
  test('end after their time, in order', () => {
    let now = 0
    const holds = new Holds({ seatsPerEvent: 4, lastsMs: 100, now: () => now })
    expect(holds.take(1, 3)).toMatchObject({ eventId: 1, seats: 3, endsAt: 100 })
    now = 60
    expect(holds.take(1, 2)).toBeUndefined()
    expect(holds.take(1, 1)).toBeDefined()
    expect(holds.take(2, 4)).toBeDefined()
    expect([holds.seatsLeft(1), holds.seatsLeft(2), holds.total]).toEqual([0, 0, 8])
    now = 100
    expect([holds.seatsLeft(1), holds.seatsLeft(2), holds.total]).toEqual([3, 0, 5])
    now = 160
    expect([holds.total, holds.seatsLeft(1), holds.seatsLeft(2)]).toEqual([0, 4, 4])
  })
})

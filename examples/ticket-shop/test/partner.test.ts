import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, expectProblem, type Service, start } from './helpers.ts'

let service: Service
beforeAll(async () => {
  service = await start('partner')
})
afterAll(async () => {
  await service.stop()
  expect(service.printed()).toBe('')
})

/** Asks as the edge does. */
async function told(answer: string | undefined, path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(service.url + path, {
    ...(answer !== undefined && { headers: { 'catraca-answer': answer } }),
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  return (await response.json()) as Record<string, unknown>
}

describe('the partner service', () => {
  test('counts the seats of an event', async () => {
    expect((await ask(`${service.url}/partner/seats/7`)).body).toMatchObject({ eventId: 7, seatsLeft: 100 })
    for (const id of ['0', '201', 'x']) expectProblem(await ask(`${service.url}/partner/seats/${id}`), 404)
  })

  test('searches, degraded without what is dear', async () => {
    const full = await told(undefined, '/partner/search', { limit: 1 })
    expect(full).toMatchObject({
      degraded: false,
      derived: true,
      items: [{ similar: [expect.any(Number), expect.any(Number), expect.any(Number)] }],
    })
    const less = await told('degrade', '/partner/search', { limit: 1, derived: true })
    expect(less).toMatchObject({ degraded: true, derived: false })
    expect((less['items'] as object[])[0]).not.toHaveProperty('similar')
  })

  test('tells sales by day, degraded by month, and they add up', async () => {
    const sum = ({ items }: Record<string, unknown>): number =>
      (items as { tickets: number }[]).reduce((all, { tickets }) => all + tickets, 0)
    const days = await told(undefined, '/partner/sales')
    const months = await told('degrade', '/partner/sales')
    expect([days['by'], days['degraded'], (days['items'] as []).length]).toEqual(['day', false, 365])
    expect([months['by'], months['degraded'], (months['items'] as []).length]).toEqual(['month', true, 12])
    expect(sum(days)).toBe(sum(months))
  })

  test('imports, checks out, and shows who is over the limit', async () => {
    const imported = await ask(`${service.url}/partner/imports`, 'POST', { items: [1, 2] })
    expect(imported).toMatchObject({ status: 200, body: { items: 2, status: 'imported' } })
    expectProblem(await ask(`${service.url}/partner/imports`, 'POST', { items: [] }), 422)
    expect((await ask(`${service.url}/partner/checkout`, 'POST', {})).status).toBe(201)
    expect(await told(undefined, '/partner/offers')).toMatchObject({ overLimit: false })
    expect(await told('mark', '/partner/offers')).toMatchObject({ overLimit: true })
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, ask, expectProblem, type Service, start } from './helpers.ts'

let service: Service
beforeAll(async () => {
  service = await start('reports')
})
afterAll(async () => {
  await service.stop()
  expect(service.printed()).toBe('')
})

const search = (body: unknown): Promise<Answer> => ask(`${service.url}/v1/buscas/avancada`, 'POST', body)

describe('reports', () => {
  test('are listed and shown', async () => {
    const { body } = await ask(`${service.url}/v1/relatorios`)
    expect(body).toMatchObject({ total: 12 })
    expect(body['items']).toHaveLength(12)
    const one = await ask(`${service.url}/v1/relatorios/2`)
    expect(one.body).toEqual({ id: 2, title: 'Sales of 2026-02', month: '2026-02', rows: 3_517 })
  })

  test('are exported as CSV, in pieces', async () => {
    const response = await fetch(`${service.url}/v1/relatorios/2/exportar`)
    expect(response.headers.get('content-type')).toMatch(/^text\/csv;/)
    expect(response.headers.get('content-length')).toBeNull()
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="sales-2026-02.csv"')
    const lines = (await response.text()).split('\r\n')
    expect(lines[0]).toBe('sale,day,event,title,city,seats,total_cents')
    expect(lines.at(-1)).toBe('')
    const rows = lines.slice(1, -1)
    expect(rows).toHaveLength(3_517)
    expect(new Set(rows.map((row) => row.split(',').length))).toEqual(new Set([7]))
  })

  test('can be left in the middle', async () => {
    const response = await fetch(`${service.url}/v1/relatorios/1/exportar`)
    await response.body?.cancel()
    const head = await fetch(`${service.url}/v1/relatorios/1/exportar`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  test.each(['/v1/relatorios/0', '/v1/relatorios/13', '/v1/relatorios/x/exportar'])('has no %s', async (path) => {
    expectProblem(await ask(service.url + path), 404)
  })
})

describe('a search', () => {
  test('finds events and works out more about them', async () => {
    const { status, body } = await search({
      text: 'jazz',
      cities: ['Lisbon'],
      maxPriceCents: 5_000,
      sort: 'price',
      limit: 3,
    })
    expect(status).toBe(200)
    const items = body['items'] as { title: string; city: string; priceCents: number; similar: number[] }[]
    expect(items).toHaveLength(3)
    expect(body['total']).toBeGreaterThan(2)
    for (const { title, city, priceCents, similar } of items) {
      expect([title.startsWith('Jazz'), city, priceCents <= 5_000, similar.length]).toEqual([true, 'Lisbon', true, 3])
    }
    const prices = items.map(({ priceCents }) => priceCents)
    expect(prices).toEqual(prices.toSorted((one, other) => one - other))
  })

  test('leaves out what is dear when asked to', async () => {
    const { body } = await search({ derived: false, limit: 1 })
    expect(body).toMatchObject({ total: 200, derived: false })
    expect((body['items'] as object[])[0]).not.toHaveProperty('similar')
  })

  test.each([
    { text: 1 },
    { cities: 'Lisbon' },
    { maxPriceCents: -1 },
    { sort: 'constructor' },
    { limit: 0 },
    { other: 1 },
  ])('refuses %j', async (body) => expectProblem(await search(body), 422))
})

describe('a batch', () => {
  test('is counted', async () => {
    const { status, body } = await ask(`${service.url}/v1/lotes/importar`, 'POST', { items: [1, {}, 'x'] })
    expect({ status, body }).toEqual({
      status: 202,
      body: { batchId: expect.any(String), items: 3, status: 'accepted' },
    })
  })

  test.each([{ items: [] }, { items: 3 }])('refuses %j', async (body) => {
    expectProblem(await ask(`${service.url}/v1/lotes/importar`, 'POST', body), 422)
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, expectProblem, type Service, start } from './helpers.ts'

let service: Service
beforeAll(async () => {
  service = await start('catalog')
})
afterAll(() => service.stop())

/** The events of a list, page by page. */
async function follow(path: string): Promise<{ id: number; city: string }[]> {
  const seen: { id: number; city: string }[] = []
  let next: unknown = path
  while (typeof next === 'string') {
    const { status, body } = await ask(service.url + next)
    expect(status).toBe(200)
    seen.push(...(body['items'] as typeof seen))
    next = body['next']
  }
  return seen
}

describe('the catalog', () => {
  test('lists 200 events in ten pages', async () => {
    const seen = await follow('/events')
    expect(seen.map(({ id }) => id)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
  })

  test('lists the events of a city', async () => {
    const seen = await follow('/events?city=recife')
    expect(seen).toHaveLength(40)
    expect(new Set(seen.map(({ city }) => city))).toEqual(new Set(['Recife']))
    expect(await follow('/events?city=Atlantis')).toEqual([])
  })

  test('shows one event, the same every time', async () => {
    const { status, type, body } = await ask(`${service.url}/events/7`)
    expect({ status, type }).toEqual({ status: 200, type: 'application/json' })
    expect(body).toEqual({
      id: 7,
      title: 'Book fair under the stars',
      city: 'Recife',
      venue: 'Bridge Theatre',
      startsAt: '2027-01-14T19:00:00.000Z',
      priceCents: 6_000,
      seats: 100,
    })
  })

  test.each([
    ['/events/0', 404],
    ['/events/201', 404],
    ['/events/x', 404],
    ['/events/%', 404],
    ['/assets/41.svg', 404],
    ['/assets/1.svg', 404],
    ['/events?page=11', 400],
    ['/events?page=0', 400],
    ['/events?page=x', 400],
    ['/events?city=Recife&page=3', 400],
  ])('answers %s with a problem', async (path, status) => {
    expectProblem(await ask(service.url + path), status)
  })

  test('serves a page with 40 files', async () => {
    const response = await fetch(service.url)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const links = [...(await response.text()).matchAll(/(?:href|src)="(assets\/[^"]+)"/g)].map(([, link = '']) => link)
    const files = [...new Set(links)]
    expect(files).toHaveLength(40)
    const answers = await Promise.all(files.map((file) => fetch(`${service.url}/${file}`)))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    const types = answers.map(({ headers }) => headers.get('content-type'))
    expect(new Set(types)).toEqual(new Set(['text/css; charset=utf-8', 'image/svg+xml']))
    await Promise.all(answers.map((answer) => answer.text()))
  })

  test('answers HEAD without a body, and 304 to who has it', async () => {
    const head = await fetch(`${service.url}/events/7`, { method: 'HEAD' })
    const tag = head.headers.get('etag') ?? ''
    expect([head.status, await head.text()]).toEqual([200, ''])
    const again = await fetch(`${service.url}/events/7`, { headers: { 'If-None-Match': `"other", W/${tag}` } })
    expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, tag, ''])
  })
})

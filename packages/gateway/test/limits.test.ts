import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ask, deadOrigin, readAll, sendRaw, startGateway, startUpstream } from './helpers.ts'

/** Two at once, and one comes back each half hour: nothing comes back while a test runs. */
const two = { limit: 48, window: '1d', burst: 2 } as const

/** Items of a structured field as the gateway writes them: the name, then parameters with whole numbers. */
function parse(field: string | string[] | undefined): Record<string, Record<string, number>> {
  const items: Record<string, Record<string, number>> = {}
  for (const item of String(field).split(/,\s*/)) {
    const [, name, parameters] = /^"([^"]+)"((?:;[a-z]+=\d+)*)$/.exec(item) ?? []
    if (name === undefined) throw new Error(`not an item: ${item}`)
    const pairs = [...(parameters ?? '').matchAll(/;([a-z]+)=(\d+)/g)]
    items[name] = Object.fromEntries(pairs.map(([, key, value]) => [key, Number(value)]))
  }
  return items
}

describe('answers of a gateway with a limit', () => {
  test('admitted requests say what is left and refused ones when to come back', async () => {
    const { url, gateway } = await startGateway((await startUpstream()).origin, { ...two, random: () => 0.5 })
    const start = performance.now()
    const answers = [await ask(url), await ask(url), await ask(url)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    for (const { headers } of answers) expect(headers['ratelimit-policy']).toBe('"address";q=2;w=3600')
    const [first, second, third] = answers.map(({ headers }) => parse(headers['ratelimit']))
    expect([first, second]).toEqual([{ address: { r: 1, t: 3_600 } }, { address: { r: 0, t: 3_600 } }])
    const waits = answers.map(({ headers }) => headers['retry-after'])
    expect(waits).toEqual([undefined, undefined, expect.stringMatching(/^\d+$/)])
    // The wait is 1800 s from the first request, less what the test took.
    const least = 1_800 - (performance.now() - start) / 1_000
    expect(third).toEqual({ address: { r: 0, t: expect.any(Number) } })
    expect(third?.['address']?.['t']).toSatisfy((t: number) => t >= least && t <= 1_800)
    expect(Number(waits[2])).toSatisfy((wait: number) => wait >= least * 1.15 && wait <= 2_070)
    expect(gateway.stats).toEqual({ admitted: 2, refused: 1, failed: 0 })
  })

  test('a refusal is a problem document that no cache keeps', async () => {
    const { url } = await startGateway((await startUpstream()).origin, two)
    await ask(url)
    await ask(url)
    const { phrase, headers, body } = await ask(url)
    const problem = JSON.parse(body.toString()) as Record<string, number>
    const seconds = Number(headers['retry-after'])
    expect(phrase).toBe('Too Many Requests')
    expect(headers['content-type']).toBe('application/problem+json')
    expect(headers['cache-control']).toBe('no-store')
    expect(Number(headers['content-length'])).toBe(body.length)
    expect(problem).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Too many requests',
      status: 429,
      detail: `The limit is 48 per day, bursts of up to 2. Try again in ${seconds} s.`,
      'violated-policies': ['address'],
      limit: 48,
      windowSeconds: 86_400,
      retryAfterSeconds: seconds,
      retryAfterMs: expect.any(Number),
    })
    expect(Math.ceil((problem['retryAfterMs'] ?? 0) / 1_000)).toBe(seconds)
  })

  test('a refused HEAD has the same head and no body', async () => {
    const { port } = await startGateway((await startUpstream()).origin, { ...two, burst: 1 })
    const head = 'HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    await sendRaw(port, head)
    const answer = await sendRaw(port, head)
    expect(answer).toMatch(/^HTTP\/1\.1 429 /)
    expect(answer).toMatch(/\r\nRetry-After: \d+\r\n/)
    expect(answer).toMatch(/\r\n\r\n$/)
    expect(answer.split('\r\n\r\n')).toHaveLength(2)
  })

  test('every answer carries the fields: 404 and 502 too', async () => {
    const upstream = await startUpstream((_, response) => response.writeHead(404).end())
    const found = await ask((await startGateway(upstream.origin, two)).url)
    const dead = await ask((await startGateway(await deadOrigin(), two)).url)
    expect([found.status, dead.status]).toEqual([404, 502])
    for (const { headers } of [found, dead]) {
      expect(headers['ratelimit-policy']).toBe('"address";q=2;w=3600')
      expect(parse(headers['ratelimit'])).toEqual({ address: { r: 1, t: 3_600 } })
      expect(headers['retry-after']).toBeUndefined()
    }
  })

  test('fields of the upstream stand beside ours', async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(429, {
        RateLimit: '"inner";r=0;t=9',
        'RateLimit-Policy': '"inner";q=5;w=10',
        'Retry-After': '9',
      })
      response.end()
    })
    const { headers } = await ask((await startGateway(upstream.origin, two)).url)
    expect(parse(headers['ratelimit'])).toEqual({ address: { r: 1, t: 3_600 }, inner: { r: 0, t: 9 } })
    expect(parse(headers['ratelimit-policy'])).toEqual({ address: { q: 2, w: 3_600 }, inner: { q: 5, w: 10 } })
    expect(headers['retry-after']).toBe('9')
  })

  test('the policy is called header when callers are counted by header', async () => {
    const { url } = await startGateway((await startUpstream()).origin, { ...two, per: 'header:x-api-key' })
    const { headers } = await ask(url, { headers: { 'x-api-key': 'k' } })
    expect(parse(headers['ratelimit-policy'])).toEqual({ header: { q: 2, w: 3_600 } })
  })
})

describe('a refusal of a request with a body', () => {
  const none = { limit: 1, window: '1d', burst: 1 } as const

  test('reaches a caller who is still sending 20 MB', async () => {
    const { url } = await startGateway((await startUpstream()).origin, none)
    await ask(url)
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': 20_000_000 } })
    outgoing.on('error', () => {})
    outgoing.end(Buffer.alloc(20_000_000))
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(incoming.statusCode).toBe(429)
    expect(incoming.headers.connection).toBe('close')
    expect(JSON.parse((await readAll(incoming)).toString())).toMatchObject({ status: 429 })
  })

  test('reaches a caller who sends everything before reading', async () => {
    const { port, url } = await startGateway((await startUpstream()).origin, none)
    await ask(url)
    const socket = connect(port, '127.0.0.1')
    socket.pause()
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n')
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.write(Buffer.alloc(20_000_000), () => resolve())
    })
    const answer = (await readAll(socket)).toString()
    expect(answer).toMatch(/^HTTP\/1\.1 429 /)
    expect(answer).toMatch(/"status":429/)
  })

  test('keeps the connection when the body is short', async () => {
    const { port, url } = await startGateway((await startUpstream()).origin, none)
    await ask(url)
    const post = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n${'x'.repeat(10_000)}`
    const last = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    const answers = await sendRaw(port, post + post + last)
    expect(answers.match(/HTTP\/1\.1 429/g)).toHaveLength(3)
  })

  test('comes instead of 100 Continue', async () => {
    const { port, url } = await startGateway((await startUpstream()).origin, none)
    await ask(url)
    const answer = await sendRaw(
      port,
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n',
    )
    expect(answer).toMatch(/^HTTP\/1\.1 429 /)
  })
})

import { request as ask, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createGuard, type Guard, type GuardOptions, type Verdict } from 'catraca/http'
import { type NodeRequest, rateLimit } from 'catraca/node'
import type { RunningApp } from 'catraca/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { serving } from './drivers/serving.ts'

type Incoming = IncomingMessage & NodeRequest
type Handler = (request: Incoming, response: ServerResponse) => void
type Kept = Parameters<NonNullable<Verdict['keep']>>[0]

const servers: RunningApp[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

const policies: GuardOptions['policies'] = {
  version: 1,
  policies: { one: { per: 'address', rule: { algorithm: 'gcra', limit: 99, window: '1h' } } },
}

function guardThat(change: (verdict: Verdict) => void): Guard<Incoming> {
  const guard = createGuard<Incoming>({ policies })
  const ask = guard.ask.bind(guard)
  guard.ask = (request) => {
    const verdict = ask(request) as Verdict
    change(verdict)
    return verdict
  }
  return guard
}

/** What is kept of an answer, and what came of it. */
async function kept(handler: Handler, around: (inner: Handler) => Handler = (inner) => inner, keepBytes = 1_000) {
  const answers: Kept[] = []
  const keep = (answer: Kept): void => void answers.push(answer)
  const guard = guardThat((verdict) => Object.assign(verdict, { keep, keepBytes }))
  const sent = await answer(around(rateLimit<Incoming, ServerResponse>(guard)(handler)))
  return { answers, sent }
}

interface Sent {
  status: number
  headers: IncomingMessage['headers']
  body: Buffer
}

async function answer(handler: Handler, headers: Record<string, string> = {}): Promise<Sent | undefined> {
  const server = await serving(createServer(handler))
  servers.push(server)
  return new Promise((resolve) => {
    const asked = ask({ port: server.port, headers }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('close', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
      )
      response.on('error', () => {})
    })
    asked.on('error', () => resolve(undefined))
    asked.end()
  })
}

const settled = async <T>(value: { answers: T[] }) => {
  await expect.poll(() => value.answers.length).toBe(1)
  return value.answers[0] as T
}

describe('a head in every form that Node takes', () => {
  test.each<[string, Handler]>([
    ['object', (_, response) => response.writeHead(201, { 'X-Own': '1', 'Set-Cookie': ['a=1', 'b=2'] }).end('ok')],
    [
      'object behind a reason',
      (_, response) => response.writeHead(201, 'Made', { 'X-Own': '1', 'Set-Cookie': ['a=1', 'b=2'] }).end('ok'),
    ],
    [
      'names and values in turn',
      (_, response) => response.writeHead(201, ['X-Own', '1', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']).end('ok'),
    ],
    [
      'pairs',
      (_, response) =>
        response
          .writeHead(201, [
            ['X-Own', '1'],
            ['Set-Cookie', ['a=1', 'b=2']],
          ] as unknown as string[])
          .end('ok'),
    ],
    [
      'set before',
      (_, response) => {
        response.statusCode = 201
        response.setHeader('X-Own', '1')
        response.setHeader('Set-Cookie', ['a=1', 'b=2'])
        response.end('ok')
      },
    ],
    [
      'flushed',
      (_, response) => {
        response.statusCode = 201
        response.setHeader('X-Own', '1').setHeader('Set-Cookie', ['a=1', 'b=2'])
        response.flushHeaders()
        response.end('ok')
      },
    ],
  ])('%s', async (_, handler) => {
    const found = await kept(handler)
    const { status, fields, body } = await settled(found)
    expect([status, Buffer.from(body).toString()]).toEqual([201, 'ok'])
    expect(fields.map(([name, value]) => [name.toLowerCase(), value])).toEqual([
      ['x-own', '1'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ])
    expect(found.sent).toMatchObject({ status: 201, headers: { 'x-own': '1', 'set-cookie': ['a=1', 'b=2'] } })
    expect(found.sent?.headers['ratelimit']).toMatch(/^"one";/)
  })
})

test('a second head, which Node refuses, is not what is kept', async () => {
  const found = await kept((_, response) => {
    response.writeHead(201, { 'X-Own': '1' })
    expect(() => response.writeHead(500)).toThrow(/after they are sent/)
    response.end('ok')
  })
  expect(await settled(found)).toMatchObject({ status: 201, fields: [['x-own', '1']] })
})

describe('the body', () => {
  test('in every form that Node takes', async () => {
    const found = await kept((_, response) => {
      response.write('é')
      response.write('e9', 'hex')
      response.write(Buffer.from('ü'), () => {})
      response.write('6Q==', 'base64', () => {})
      response.end('é', 'latin1', () => {})
    })
    const bytes = Buffer.from([0xc3, 0xa9, 0xe9, 0xc3, 0xbc, 0xe9, 0xe9])
    expect(Buffer.from((await settled(found)).body)).toEqual(bytes)
    expect(found.sent?.body).toEqual(bytes)
  })

  test('is copied: what a handler writes into its buffer later is not kept', async () => {
    const found = await kept((_, response) => {
      const buffer = Buffer.from('first')
      response.write(buffer, () => {
        buffer.write('later')
        response.end()
      })
    })
    expect(Buffer.from((await settled(found)).body).toString()).toBe('first')
  })

  test.each([
    [4, 1],
    [3, 0],
  ])('of four bytes, with room for %i', async (room, count) => {
    const { answers } = await kept((_, response) => response.write('ab', () => response.end('cd')), undefined, room)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(answers).toHaveLength(count)
  })

  test('that is shorter than it said is not kept', async () => {
    const { answers } = await kept(({ socket }, response) => {
      response.writeHead(200, { 'Content-Length': 10 }).end('short')
      response.once('finish', () => setImmediate(() => socket.destroy()))
    })
    expect(answers).toEqual([])
  })

  test('is kept as it is before an outer compression, with its own fields', async () => {
    const found = await kept((_, response) => response.end('plain'), compressed)
    const { fields, body } = await settled(found)
    expect([fields, Buffer.from(body).toString()]).toEqual([[], 'plain'])
    expect([found.sent?.headers['content-encoding'], found.sent?.body.toString()]).toEqual(['x', 'nialp'])
  })

  test('is kept as it comes out of an inner compression, with what says so', async () => {
    const found = await kept(compressed((_, response) => response.end('plain')))
    const { fields, body } = await settled(found)
    expect([fields, Buffer.from(body).toString()]).toEqual([[['content-encoding', 'x']], 'nialp'])
    expect(found.sent?.body.toString()).toBe('nialp')
  })
})

/** What compression does to an answer: says so in the head at the last moment, and writes other bytes. */
function compressed(inner: Handler): Handler {
  return (request, response) => {
    const writeHead = response.writeHead.bind(response)
    const end = response.end.bind(response)
    response.writeHead = ((...all: Parameters<typeof writeHead>) => {
      response.setHeader('Content-Encoding', 'x')
      return writeHead(...all)
    }) as typeof response.writeHead
    response.end = ((text: string) => {
      // As the middleware does, which looks at the head before it writes.
      if (!response.headersSent) response.writeHead(response.statusCode)
      return end(text.split('').toReversed().join(''))
    }) as typeof response.end
    inner(request, response)
  }
}

describe('cacheable: omit', () => {
  const handlers: [string, boolean, Handler][] = [
    ['public in an object', false, (_, response) => response.writeHead(200, { 'cache-control': 'PUBLIC' }).end()],
    ['public in an array', false, (_, response) => response.writeHead(200, ['Cache-Control', 'a, public']).end()],
    ['s-maxage set before', false, (_, response) => response.setHeader('Cache-Control', 's-maxage=1').end()],
    ['in one of two lines', false, (_, response) => response.setHeader('Cache-Control', ['no-cache', 'public']).end()],
    ['a word that begins like it', true, (_, response) => response.setHeader('Cache-Control', 'publicly, x=1').end()],
    ['private', true, (_, response) => response.setHeader('Cache-Control', 'private, max-age=9').end()],
    ['none', true, (_, response) => response.end()],
  ]
  test.each(handlers)('%s: told %s', async (_, told, handler) => {
    const guard = createGuard<Incoming>({ policies, headers: ['ietf', 'legacy'] })
    Object.defineProperty(guard, 'omitsCacheable', { value: true })
    const sent = await answer(rateLimit<Incoming, ServerResponse>(guard)(handler))
    const names = Object.keys(sent?.headers ?? {}).filter((name) => name.startsWith('ratelimit'))
    expect(names).toHaveLength(told ? 5 : 0)
  })
})

test('a header that only a guard may write is taken away in every form in which Node shows it', async () => {
  const guard = createGuard<Incoming>({ policies })
  const handler: Handler = ({ headers, headersDistinct, rawHeaders }, response) => {
    response.end(JSON.stringify([headers, headersDistinct, rawHeaders]).toLowerCase())
  }
  const forged = { 'Catraca-Answer': 'mark', 'X-Own': 'catraca', 'catraca-answered': '1' }
  const sent = await answer(rateLimit<Incoming, ServerResponse>(guard)(handler), forged)
  const text = sent?.body.toString() ?? ''
  expect(text).not.toMatch(/mark|"catraca-answer"/)
  expect(text.match(/"x-own"/g)).toHaveLength(3)
  expect(text.match(/"catraca-answered"/g)).toHaveLength(3)
})

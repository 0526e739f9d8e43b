import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { createGateway, isCatracaError } from '@catraca/gateway'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Answer, ask, deadOrigin, readAll, startGateway, startTcp, startUpstream, until } from './helpers.ts'

const short = { timeouts: { connectMs: 100, responseMs: 100, bodyIdleMs: 100 } }

/** A process that listens but stands still, its queue of connections full: the system leaves further ones unanswered. */
async function startDeaf(): Promise<string> {
  const source = `
    const server = require('node:net').createServer()
    server.listen(0, '127.0.0.1', 1, () => {
      require('node:fs').writeSync(1, String(server.address().port))
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`
  const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [data] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(data)
  // The queue takes one more than it was asked for; with any other size these hang, and the test with them.
  for (let count = 0; count < 2; count++) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
  }
  return `http://127.0.0.1:${port}`
}

function problem({ headers, body }: Answer): { title: string; status: number; detail: string } {
  expect(headers['content-type']).toBe('application/problem+json')
  expect(headers['cache-control']).toBe('no-store')
  expect(body.toString()).not.toMatch(/\n\s+at |node:|\.js/)
  return JSON.parse(body.toString()) as { title: string; status: number; detail: string }
}

describe('an upstream that fails', () => {
  test('dead: 502 that names it', async () => {
    const origin = await deadOrigin()
    const { url, warnings, gateway } = await startGateway(origin)
    const answer = await ask(url)
    expect(answer.status).toBe(502)
    expect(problem(answer)).toEqual({
      type: 'about:blank',
      title: 'Bad Gateway',
      status: 502,
      detail: `The upstream ${origin} refused the connection.`,
    })
    expect(warnings).toEqual([`upstream ${origin} refused the connection`])
    expect(gateway.stats).toEqual({ admitted: 1, refused: 0, failed: 1 })
    expect(await gateway.probeUpstreams()).toEqual([
      `upstream ${origin} refused the connection; requests are answered 502 or 504 until it works`,
    ])
  })

  test('a name without an address: 502', async () => {
    const { url } = await startGateway('http://nowhere.invalid')
    const answer = await ask(url)
    expect(answer.status).toBe(502)
    expect(problem(answer).detail).toMatch(/^The upstream http:\/\/nowhere\.invalid /)
  })

  test('silent after the connection: 504', async () => {
    const origin = await startTcp(() => {})
    const { url, warnings } = await startGateway(origin, short)
    const answer = await ask(url)
    expect(answer.status).toBe(504)
    expect(problem(answer).detail).toBe(`The upstream ${origin} did not answer within 0.1 s.`)
    expect(warnings).toHaveLength(1)
  })

  test('takes no connection: 504', async () => {
    const origin = await startDeaf()
    const { url, gateway } = await startGateway(origin, short)
    const answer = await ask(url)
    expect(answer.status).toBe(504)
    expect(problem(answer).detail).toBe(`The upstream ${origin} did not accept a connection within 0.1 s.`)
    expect(await gateway.probeUpstreams()).toEqual([
      `upstream ${origin} did not accept a connection within 0.1 s; requests are answered 502 or 504 until it works`,
    ])
  })

  test('does not read the body it is sent: 504', async () => {
    const origin = await startTcp((socket) => socket.pause())
    const { url } = await startGateway(origin, short)
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': 50_000_000 } })
    outgoing.on('error', () => {})
    outgoing.end(Buffer.alloc(50_000_000))
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(incoming.statusCode).toBe(504)
  })

  test('closes in the middle of a body: 502, also for a caller who sends everything before reading', async () => {
    const origin = await startTcp((socket) => socket.once('data', () => socket.destroy()))
    const { port } = await startGateway(origin)
    const socket = connect(port, '127.0.0.1')
    socket.pause()
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n')
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.write(Buffer.alloc(20_000_000), () => resolve())
    })
    expect((await readAll(socket)).toString()).toMatch(/^HTTP\/1\.1 502 [^]*"status":502/)
  })

  test.each([
    ['closes at once', ''],
    ['speaks another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['stops in the middle of the head', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['has a head that is too long', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`],
  ])('%s: 502', async (_what, bytes) => {
    const origin = await startTcp((socket) => socket.once('data', () => socket.end(bytes)))
    const answer = await ask((await startGateway(origin)).url)
    expect(answer.status).toBe(502)
    expect(problem(answer).detail.startsWith(`The upstream ${origin} `)).toBe(true)
  })

  test.each([
    ['breaks off', 'Content-Length: 100', true],
    ['breaks off between chunks', 'Transfer-Encoding: chunked', true],
    ['falls silent', 'Content-Length: 100', false],
  ])('%s in the middle of the body: the caller sees that it is not whole', async (_what, field, ends) => {
    const body = field.startsWith('T') ? '4\r\npart\r\n' : 'part'
    const origin = await startTcp((socket) =>
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${field}\r\n\r\n${body}`)
        if (ends) socket.end()
      }),
    )
    const { url, warnings, gateway } = await startGateway(origin, short)
    const outgoing = request(url, { agent: false }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    await expect(readAll(incoming)).rejects.toThrow()
    expect(warnings).toEqual([expect.stringMatching(/in the middle of an answer$/)])
    expect(gateway.stats.failed).toBe(1)
  })

  test('works again as soon as the upstream does', async () => {
    let dead = true
    const origin = await startTcp((socket) => {
      if (dead) socket.destroy()
      else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
    const { url } = await startGateway(origin)
    expect((await ask(url)).status).toBe(502)
    dead = false
    expect((await ask(url)).status).toBe(200)
  })
})

describe('a caller that stands still', () => {
  test('in the middle of its body is disconnected', async () => {
    const { port } = await startGateway((await startUpstream(() => {})).origin, { timeouts: { clientIdleMs: 100 } })
    const socket = connect(port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx')
    await readAll(socket)
  })
})

describe('closing', () => {
  test('lets a running request end, tells its connection to close, and takes no new ones', async () => {
    let finish = (): void => {}
    const upstream = await startUpstream((_, response) => void (finish = () => response.end('done')))
    const { gateway, port, url } = await startGateway(upstream.origin)
    const answer = ask(url, { headers: { Connection: 'keep-alive' } })
    await until(() => upstream.seen.length === 1)
    const closed = gateway.close()
    await expect(ask(`http://127.0.0.1:${port}`)).rejects.toThrow(/ECONNREFUSED/)
    finish()
    expect(await answer).toMatchObject({ status: 200, headers: { connection: 'close' } })
    await closed
  })

  test('ends a connection whose head had already said that it stays', async () => {
    let finish = (): void => {}
    const upstream = await startUpstream((_, response) => {
      response.flushHeaders()
      finish = () => response.end('done')
    })
    const { gateway, port } = await startGateway(upstream.origin)
    const socket = connect(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const [head] = (await once(socket, 'data')) as [Buffer]
    expect(head.toString()).toMatch(/\r\nConnection: keep-alive\r\n/)
    const closed = gateway.close(60_000)
    finish()
    expect((await readAll(socket)).toString()).toMatch(/done/)
    await closed
  })

  test('cuts what still runs after the grace', async () => {
    const upstream = await startUpstream(() => {})
    const { gateway, url } = await startGateway(upstream.origin)
    const answer = ask(url)
    const failed = expect(answer).rejects.toThrow()
    await until(() => upstream.seen.length === 1)
    await gateway.close(50)
    await failed
  })
})

describe('options', () => {
  test.each([
    ['upstream', { upstream: 'ftp://files.example' }],
    ['upstream', { upstream: 'http://x.example/path' }],
    ['upstream', { upstream: 'http://user:pass@x.example' }],
    ['upstream', { upstream: '127.0.0.1:3000' }],
    ['upstream', { upstream: 'http://' }],
    ['limit', { limit: 0 }],
    ['window', { window: '1 minute' as '1m' }],
    ['burst', { burst: 1.5 }],
    ['per', { per: 'header:no spaces' as const }],
    ['per', { per: 'cookie' as 'address' }],
    ['trust', { trust: 33 }],
    ['timeouts.connectMs', { timeouts: { connectMs: 0 } }],
    ['timeouts', { timeouts: { conectMs: 1, connectMs: 1 } }],
  ])('%s of %j is refused with its path', (path, options) => {
    try {
      createGateway({ upstream: 'http://127.0.0.1:1', ...options })
      expect.unreachable()
    } catch (error) {
      if (!isCatracaError(error)) throw error
      expect(error.path).toBe(path)
      expect(error.message).toMatch(/allowed/)
    }
  })

  test('an origin may end in a slash and be a URL', () => {
    expect(createGateway({ upstream: 'http://127.0.0.1:3000/' }).origins).toEqual(['http://127.0.0.1:3000'])
    expect(createGateway({ upstream: new URL('https://[::1]') }).origins).toEqual(['https://[::1]'])
  })

  test('the burst is 120, or the limit where that is less', () => {
    const { summary } = createGateway({ upstream: 'http://127.0.0.1:1' })
    expect(summary).toEqual([
      'address: 600 per minute, bursts of up to 120, for each address',
      'login: 5 per 15 minutes, estimated over a sliding window, for each address (POST **/login)',
      'service: 1,000 per second, bursts of up to 1,000, for all together',
    ])
    expect(createGateway({ upstream: 'http://127.0.0.1:1', limit: 1, window: '90s' }).summary[0]).toBe(
      'address: 1 per 90 seconds, bursts of up to 1, for each address',
    )
  })
})

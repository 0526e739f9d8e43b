import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { ask, readAll, sendRaw, startGateway, startTcp, startUpstream, until } from './helpers.ts'

const digest = (data: Buffer): string => createHash('sha256').update(data).digest('hex')
const big = randomBytes(20_000_000)

describe('requests on their way to the upstream', () => {
  test('keep method, path and query byte for byte', async () => {
    const upstream = await startUpstream()
    const { port } = await startGateway(upstream.origin)
    const targets = ['/', '/a//b/../c/%2e%2E/%zz?x=1&&y=%20+;#?', '//double', '/a?', '/|{}^"<>`']
    for (const target of targets) {
      await sendRaw(port, `PATCH ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    }
    expect(upstream.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(
      targets.map((target) => `PATCH ${target}`),
    )
  })

  test('lose the origin of the absolute form, and "*" is answered 400', async () => {
    const upstream = await startUpstream()
    const { port } = await startGateway(upstream.origin)
    for (const target of ['http://elsewhere.example/a?b', 'HTTPS://elsewhere.example', 'http://elsewhere.example?q']) {
      await sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    }
    expect(upstream.seen.map(({ url }) => url)).toEqual(['/a?b', '/', '/?q'])
    expect(await sendRaw(port, 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 400 /,
    )
  })

  test('stream a body of 20 MB with its length', async () => {
    const upstream = await startUpstream(async (incoming, response) => response.end(digest(await readAll(incoming))))
    const { url } = await startGateway(upstream.origin)
    const { body } = await ask(url, { method: 'PUT', body: big, headers: { 'Content-Length': big.length } })
    expect(body.toString()).toBe(digest(big))
    expect(upstream.seen[0]?.headers).toMatchObject({ 'content-length': String(big.length) })
    expect(upstream.seen[0]?.headers['transfer-encoding']).toBeUndefined()
  })

  test('stream a chunked body, piece by piece, in both directions at once', async () => {
    const upstream = await startUpstream((incoming, response) => incoming.pipe(response))
    const { url } = await startGateway(upstream.origin)
    const outgoing = request(url, { method: 'POST', agent: false })
    outgoing.write('one')
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    const pieces: string[] = []
    for (const next of ['two', 'three', undefined]) {
      const [piece] = (await once(incoming, 'data')) as [Buffer]
      pieces.push(piece.toString())
      if (next === undefined) outgoing.end()
      else outgoing.write(next)
    }
    await once(incoming, 'end')
    expect(pieces).toEqual(['one', 'two', 'three'])
    expect(upstream.seen[0]?.headers['transfer-encoding']).toBe('chunked')
  })

  test('wait for an upstream that does not read', async () => {
    let go = (): void => {}
    const upstream = await startUpstream((incoming, response) => {
      incoming.pause()
      go = () => void readAll(incoming).then((body) => response.end(digest(body)))
    })
    const { url } = await startGateway(upstream.origin)
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': big.length } })
    let sent = false
    outgoing.end(big, () => (sent = true))
    await until(() => upstream.seen.length === 1)
    await settled(() => outgoing.socket?.bytesWritten ?? 0)
    expect(sent).toBe(false)
    go()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect((await readAll(incoming)).toString()).toBe(digest(big))
  })

  test('are told to continue before they send', async () => {
    const upstream = await startUpstream(async (incoming, response) => response.end(await readAll(incoming)))
    const { url } = await startGateway(upstream.origin)
    const outgoing = request(url, {
      method: 'POST',
      agent: false,
      headers: { Expect: '100-continue', 'Content-Length': 5 },
    })
    outgoing.flushHeaders()
    await once(outgoing, 'continue')
    outgoing.end('hello')
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect((await readAll(incoming)).toString()).toBe('hello')
    expect(upstream.seen[0]?.headers.expect).toBeUndefined()
  })

  test('of HTTP/1.0 are not told to continue, which they would not understand', async () => {
    const { port } = await startGateway((await startUpstream()).origin)
    const answer = await sendRaw(port, 'POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx')
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('end at the upstream when the caller leaves', async () => {
    let upstreamClosed = false
    const upstream = await startUpstream((_, response) => {
      if (upstreamClosed) response.end('ok')
      else response.once('close', () => (upstreamClosed = true))
    })
    const { url, gateway } = await startGateway(upstream.origin, { timeouts: { responseMs: 60_000 } })
    const outgoing = request(url, { agent: false })
    outgoing.on('error', () => {})
    outgoing.end()
    await until(() => upstream.seen.length === 1)
    outgoing.destroy()
    await until(() => upstreamClosed)
    expect(gateway.stats).toEqual({ admitted: 1, refused: 0, failed: 0 })
    expect((await ask(url)).status).toBe(200)
  })

  test('end at the upstream when the caller leaves in the middle of sending', async () => {
    const ends: string[] = []
    const upstream = await startUpstream((incoming) => {
      incoming
        .on('error', () => ends.push('error'))
        .on('end', () => ends.push('end'))
        .resume()
    })
    const { url, gateway, warnings } = await startGateway(upstream.origin)
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': 1_000 } })
    outgoing.on('error', () => {})
    outgoing.write('x')
    await until(() => upstream.seen.length === 1)
    outgoing.destroy()
    await until(() => ends.length > 0)
    expect(ends).toEqual(['error'])
    expect(gateway.stats.failed).toBe(0)
    expect(warnings).toEqual([])
  })
})

describe('answers on their way to the caller', () => {
  test('keep status, phrase, fields, repeated cookies and their order', async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(299, 'Rather Fine', [
        'X-One',
        '1',
        'Set-Cookie',
        'a=1',
        'Set-Cookie',
        'b=2',
        'x-caf',
        'caf\xe9',
      ])
      response.end('body')
    })
    const answer = await ask((await startGateway(upstream.origin)).url)
    expect([answer.status, answer.phrase, answer.body.toString()]).toEqual([299, 'Rather Fine', 'body'])
    expect(answer.headers['set-cookie']).toEqual(['a=1', 'b=2'])
    expect(answer.headers['x-caf']).toBe('caf\xe9')
    const names = answer.rawHeaders.filter((_, index) => index % 2 === 0)
    expect(names.filter((name) => /^x-|^set-/i.test(name))).toEqual(['X-One', 'Set-Cookie', 'Set-Cookie', 'x-caf'])
  })

  test('stream 20 MB with their length', async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { 'Content-Length': big.length })
      response.end(big)
    })
    const { headers, body } = await ask((await startGateway(upstream.origin)).url)
    expect(digest(body)).toBe(digest(big))
    expect(headers['content-length']).toBe(String(big.length))
    expect(headers['transfer-encoding']).toBeUndefined()
  })

  test('are chunked when the upstream gives no length', async () => {
    const upstream = await startUpstream((_, response) => {
      response.write('a')
      response.end('b')
    })
    const { headers, body } = await ask((await startGateway(upstream.origin)).url)
    expect(headers['transfer-encoding']).toBe('chunked')
    expect(body.toString()).toBe('ab')
  })

  test('begin before the upstream has finished: head first, then each piece', async () => {
    let finish = (): void => {}
    const upstream = await startUpstream((_, response) => {
      response.flushHeaders()
      finish = () => response.end('late')
    })
    const { url } = await startGateway(upstream.origin)
    const outgoing = request(url, { agent: false }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(incoming.statusCode).toBe(200)
    finish()
    expect((await readAll(incoming)).toString()).toBe('late')
  })

  test('wait for a caller that does not read, and longer than the upstream may be silent', async () => {
    let written = 0
    const upstream = await startUpstream((_, response) => {
      const more = (): void => {
        while (written < 200) {
          written++
          if (!response.write(big.subarray(0, 500_000))) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    })
    const { url } = await startGateway(upstream.origin, { timeouts: { bodyIdleMs: 100 } })
    const outgoing = request(url, { agent: false }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    incoming.pause()
    await settled(() => written)
    expect(written).toBeLessThan(200)
    expect((await readAll(incoming)).length).toBe(100_000_000)
  })

  test('have no body for HEAD, 204 and 304', async () => {
    const upstream = await startUpstream((incoming, response) => {
      const status = Number(incoming.url?.slice(1))
      response.writeHead(status, status === 200 ? { 'Content-Length': 1_234 } : { ETag: '"v1"' })
      response.end()
    })
    const { port } = await startGateway(upstream.origin)
    for (const line of ['HEAD /200', 'GET /204', 'GET /304']) {
      const answer = await sendRaw(port, `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      expect(answer).toMatch(line === 'HEAD /200' ? /\r\nContent-Length: 1234\r\n/ : /\r\nETag: "v1"\r\n/)
      expect(answer).toMatch(/\r\n\r\n$/)
      expect(answer).not.toMatch(/transfer-encoding/i)
    }
  })

  test('reach HTTP/1.0 callers without chunks', async () => {
    const upstream = await startUpstream((_, response) => {
      response.write('a')
      response.end('b')
    })
    const { port } = await startGateway(upstream.origin)
    const answer = await sendRaw(port, 'GET / HTTP/1.0\r\n\r\n')
    expect(answer).toMatch(/\r\n\r\nab$/)
  })

  test('come early, before the body was sent, and still arrive', async () => {
    const upstream = await startUpstream((_, response) => response.writeHead(413).end('too long'))
    const { url } = await startGateway(upstream.origin)
    const outgoing = request(url, {
      method: 'POST',
      agent: false,
      headers: { 'Content-Length': big.length, Connection: 'keep-alive' },
    })
    outgoing.on('error', () => {})
    outgoing.end(big)
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(incoming).toMatchObject({ statusCode: 413, headers: { connection: 'close' } })
    expect((await readAll(incoming)).toString()).toBe('too long')
  })

  test('may be announced by early hints', async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' })
      response.end('ok')
    })
    const { url } = await startGateway(upstream.origin)
    const outgoing = request(url, { agent: false }).end()
    const hint = once(outgoing, 'information')
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(await hint).toMatchObject([{ statusCode: 103, headers: { link: '</style.css>; rel=preload; as=style' } }])
    expect((await readAll(incoming)).toString()).toBe('ok')
  })

  test('with a phrase that cannot be sent on get the usual one', async () => {
    const origin = await startTcp((socket) =>
      socket.end('HTTP/1.1 200 caf\xe9\r\nContent-Length: 2\r\n\r\nok', 'latin1'),
    )
    expect(await ask((await startGateway(origin)).url)).toMatchObject({ status: 200, phrase: 'OK' })
  })

  test('use one connection to the upstream for one caller after the other', async () => {
    const upstream = await startUpstream()
    const { url } = await startGateway(upstream.origin)
    for (let count = 0; count < 5; count++) await ask(url)
    expect(new Set(upstream.seen.map(({ socket }) => socket)).size).toBe(1)
  })
})

/** Resolves when a number has not changed for a while, as that of bytes does when a stream is held back. */
async function settled(read: () => number): Promise<void> {
  let last = -1
  let same = 0
  await until(() => {
    const now = read()
    same = now === last ? same + 1 : 0
    last = now
    return same > 60
  })
}

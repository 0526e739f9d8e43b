import { describe, expect, test } from 'vitest'
import { ask, sendRaw, startGateway, startTcp, startUpstream } from './helpers.ts'

const hopFields = {
  'Keep-Alive': 'timeout=9',
  'Proxy-Authenticate': 'Basic',
  'Proxy-Authorization': 'Basic eDp5',
  'Proxy-Connection': 'keep-alive',
  TE: 'trailers',
  'X-Private': 'for this hop',
}

describe('fields of one hop', () => {
  test('do not reach the upstream; the others do, as they were written', async () => {
    const upstream = await startUpstream()
    const headers = { ...hopFields, Connection: 'X-Private, close', Authorization: 'Bearer t', 'X-Mixed-Case': 'a, b' }
    await ask((await startGateway(upstream.origin)).url, { headers })
    const [seen] = upstream.seen
    for (const name of Object.keys(hopFields)) expect(seen?.headers).not.toHaveProperty(name.toLowerCase())
    expect(seen?.headers).toMatchObject({ authorization: 'Bearer t', 'x-mixed-case': 'a, b', connection: 'keep-alive' })
    expect(seen?.rawHeaders).toContain('X-Mixed-Case')
  })

  test('do not reach the caller', async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { ...hopFields, Connection: 'X-Private', Upgrade: 'h2c', 'X-Public': 'yes' }).end('ok')
    })
    const { headers } = await ask((await startGateway(upstream.origin)).url)
    for (const name of [
      'proxy-authenticate',
      'proxy-authorization',
      'proxy-connection',
      'te',
      'upgrade',
      'x-private',
    ]) {
      expect(headers).not.toHaveProperty(name)
    }
    expect(headers['x-public']).toBe('yes')
    expect(headers['keep-alive']).not.toBe('timeout=9')
  })

  test('trailers and their announcement end here too', async () => {
    const chunks = 'Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n'
    const seen: string[] = []
    const origin = await startTcp((socket) =>
      socket.on('data', (data) => {
        seen.push(data.toString())
        if (/\r\nhi(\r\n0\r\n\r\n)?$/.test(seen.join(''))) socket.write(`HTTP/1.1 200 OK\r\n${chunks}`)
      }),
    )
    const { port } = await startGateway(origin)
    const answer = await sendRaw(port, `POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${chunks}`)
    expect(answer).toMatch(/\r\nhi\r\n0\r\n\r\n$/)
    expect(answer).not.toMatch(/trailer|x-sum/i)
    expect(seen.join('')).not.toMatch(/trailer|x-sum/i)
  })

  test('a caller cannot name away the length of its body', async () => {
    const upstream = await startUpstream((incoming, response) => incoming.pipe(response))
    const { port } = await startGateway(upstream.origin)
    const head =
      'POST / HTTP/1.1\r\nHost: x\r\nConnection: close, Content-Length, X-Forwarded-For\r\nContent-Length: 2\r\n\r\nhi'
    expect(await sendRaw(port, head)).toMatch(/hi/)
    expect(upstream.seen[0]?.headers).toMatchObject({ 'content-length': '2', 'x-forwarded-for': '127.0.0.1' })
  })
})

describe('what the upstream is told about the caller', () => {
  const claims = {
    'X-Forwarded-For': '6.6.6.6',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'shop.example',
    'X-Forwarded-Port': '443',
    'X-Real-IP': '6.6.6.6',
    Forwarded: 'for=6.6.6.6',
    Host: 'asked.example:8080',
  }

  test('without trust only what the gateway saw itself', async () => {
    const upstream = await startUpstream()
    await ask((await startGateway(upstream.origin)).url, { headers: claims })
    const headers = upstream.seen[0]?.headers ?? {}
    expect(headers).toMatchObject({
      host: new URL(upstream.origin).host,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'asked.example:8080',
    })
    for (const name of ['x-forwarded-port', 'x-real-ip', 'forwarded']) expect(headers).not.toHaveProperty(name)
  })

  test('behind a trusted proxy what that proxy said, with the proxy appended', async () => {
    const upstream = await startUpstream()
    await ask((await startGateway(upstream.origin, { trust: 1 })).url, { headers: claims })
    expect(upstream.seen[0]?.headers).toMatchObject({
      host: new URL(upstream.origin).host,
      'x-forwarded-for': '6.6.6.6, 127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'shop.example',
      'x-forwarded-port': '443',
      'x-real-ip': '6.6.6.6',
    })
    expect(upstream.seen[0]?.headers).not.toHaveProperty('forwarded')
  })
})

describe('what is not passed on', () => {
  test('WebSocket connections get 501; other upgrades are answered as plain requests', async () => {
    const { port } = await startGateway((await startUpstream()).origin)
    const upgrade = (to: string): string =>
      `GET / HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\nUpgrade: ${to}\r\n\r\n`
    const refused = await sendRaw(port, upgrade('websocket'))
    expect(refused).toMatch(/^HTTP\/1\.1 501 /)
    expect(refused).toMatch(/application\/problem\+json/)
    expect(refused).toMatch(/WebSocket connections are not passed on by this version/)
    expect(await sendRaw(port, upgrade('h2c'))).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('tunnels get 501', async () => {
    const { port } = await startGateway((await startUpstream()).origin)
    expect(await sendRaw(port, 'CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n')).toMatch(/^HTTP\/1\.1 501 /)
  })

  test.each([
    ['two lengths', 'Content-Length: 1\r\nContent-Length: 2', 400],
    ['a length and chunks', 'Content-Length: 4\r\nTransfer-Encoding: chunked', 400],
    ['a coding after chunks', 'Transfer-Encoding: chunked, identity', 400],
    ['a coding beside chunks', 'Transfer-Encoding: gzip, chunked', 501],
  ])('a request with %s is answered at the edge', async (_what, fields, status) => {
    const upstream = await startUpstream()
    const { port } = await startGateway(upstream.origin)
    const answer = await sendRaw(port, `POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${fields}\r\n\r\n0\r\n\r\n`)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(upstream.seen).toHaveLength(0)
  })

  test('an answer with a coding beside chunks gets 502', async () => {
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'
    const { url } = await startGateway(await startTcp((socket) => socket.write(head)))
    expect((await ask(url)).status).toBe(502)
  })
})

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GatewayDocument } from '@catraca/config'
import { createGateway } from '@catraca/gateway'
import type { PolicyEntry } from 'catraca/policy'
import { describe, expect, onTestFinished, test } from 'vitest'
import { run } from './command.ts'
import { ask, deadOrigin, readAll, startTcp, startUpstream, until } from './helpers.ts'

type Overflow = PolicyEntry['overflow'] & object

const keyHash = (key: string): string => createHash('sha256').update(key).digest('hex')
const key = { 'x-api-key': 'secret' }
const json = { ...key, 'content-type': 'application/json' }

function documentOf(
  origin: string,
  overflow: Overflow,
  rule: PolicyEntry['rule'] = { algorithm: 'token-bucket', limit: 1, window: '1h', burst: 1 },
): GatewayDocument {
  return {
    version: 1,
    trust: { proxies: 0 },
    upstreams: { app: origin },
    auth: { apiKeys: { keys: [{ sha256: keyHash('secret'), client: 'acme' }] } },
    policies: { client: { per: 'client', rule, overflow } },
  }
}

async function start(document: GatewayDocument) {
  const warnings: string[] = []
  const gateway = createGateway({ document, onWarning: (line) => void warnings.push(line) })
  const port = await gateway.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => gateway.close(0))
  return { gateway, port, url: `http://127.0.0.1:${port}`, warnings }
}

const post = (url: string, headers: Record<string, string> = json, body = '{"n":1}') =>
  ask(`${url}/import`, { method: 'POST', headers, body })

describe('accept at the edge', () => {
  test('takes no body that it cannot keep, and refuses it instead', async () => {
    const upstream = await startUpstream()
    const { url } = await start(documentOf(upstream.origin, ['accept']))
    expect((await post(url)).status).toBe(200)
    const form = { ...key, 'content-type': 'application/x-www-form-urlencoded' }
    expect((await post(url, form, 'a=1')).status).toBe(429)
    expect((await post(url, json, `"${'x'.repeat(65_536)}"`)).status).toBe(429)
    expect((await post(url, { ...json, 'transfer-encoding': 'chunked' })).status).toBe(429)
    expect((await post(url, json, 'no JSON')).status).toBe(202)
    expect((await ask(`${url}/import`, { method: 'POST', headers: key })).status).toBe(202)
    expect(upstream.seen.length).toBe(1)
  })

  test('asks for the body of who waits for 100 Continue, once', async () => {
    const upstream = await startUpstream()
    const { url } = await start(documentOf(upstream.origin, ['accept']))
    await post(url)
    const outgoing = httpRequest(`${url}/import`, {
      method: 'POST',
      agent: false,
      headers: { ...json, expect: '100-continue', 'content-length': 7 },
    })
    let continues = 0
    outgoing.on('continue', () => {
      continues++
      outgoing.end('{"n":2}')
    })
    outgoing.flushHeaders()
    const [answer] = (await once(outgoing, 'response')) as [AsyncIterable<Buffer> & { statusCode: number }]
    await readAll(answer)
    expect([answer.statusCode, continues]).toEqual([202, 1])
  })

  test('sends the work with the address and without the key of its caller, who is gone, and after a reload', async () => {
    const upstream = await startUpstream()
    const rule = { algorithm: 'token-bucket', limit: 2, window: '1s', burst: 1 }
    const { url, gateway } = await start(documentOf(upstream.origin, ['accept'], rule))
    await post(url)
    const accepted = await post(url, { ...json, 'x-forwarded-for': '203.0.113.9', 'x-other': 'kept' })
    expect(accepted.status).toBe(202)
    const next = documentOf(upstream.origin, ['accept'], rule)
    const keys = { header: 'x-new-key', keys: [{ sha256: keyHash('secret'), client: 'acme' }] }
    gateway.reload({ ...next, auth: { apiKeys: keys } })
    await until(() => upstream.seen.length === 2)
    const { headers } = upstream.seen[1] as (typeof upstream.seen)[number]
    expect(headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-other': 'kept', 'content-length': '7' })
    expect(headers).not.toHaveProperty('x-api-key')
  })

  test('accepts nothing with a key that is not known', async () => {
    const upstream = await startUpstream()
    const document = documentOf(upstream.origin, ['accept'])
    const strangers: PolicyEntry = {
      match: { identity: 'anonymous' },
      per: ['address', 'user'],
      rule: { algorithm: 'token-bucket', limit: 1, window: '1h', burst: 1 },
      overflow: ['accept'],
    }
    const { url } = await start({ ...document, policies: { strangers } })
    const statuses: number[] = []
    for (let index = 0; index < 3; index++) {
      statuses.push((await post(url, { ...json, 'x-api-key': `forged-${index}` })).status)
    }
    expect(statuses).toEqual([401, 429, 429])
    expect(upstream.seen).toEqual([])
  })

  test('says that work failed whose service is gone, without its address', async () => {
    const rule = { algorithm: 'token-bucket', limit: 20, window: '1s', burst: 1 }
    const { url } = await start(documentOf(await deadOrigin(), ['accept'], rule))
    const answers = await Promise.all([post(url), post(url)])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 502])
    const location = String(answers.find(({ status }) => status === 202)?.headers.location)
    let told: Record<string, unknown> = {}
    const look = async (): Promise<void> => {
      told = JSON.parse((await ask(url + location)).body.toString()) as typeof told
    }
    while (told['state'] !== 'failed') await look()
    expect(told['error']).toBe('the service refused the connection')
  })

  test('leaves the paths of a service alone that look like those of work, where no policy accepts', async () => {
    const upstream = await startUpstream()
    const { url } = await start(documentOf(upstream.origin, ['reject']))
    expect((await ask(`${url}/jobs/${'a'.repeat(32)}`, { headers: key })).body.toString()).toBe('ok')
  })
})

describe('a copy at the edge', () => {
  const stale: Overflow = [{ stale: { maxAge: '1h' } }]
  /** What two requests are answered by a service that answers on a bare socket. */
  async function two(answer: string, ending: 'end' | 'reset' = 'end', method = 'GET'): Promise<(number | string)[]> {
    const origin = await startTcp((socket) => {
      socket.once('data', () => {
        socket.write(answer)
        if (ending === 'end') socket.end()
        else setTimeout(() => socket.resetAndDestroy(), 30)
      })
    })
    const { url } = await start(documentOf(origin, stale))
    const one = (how: string) =>
      ask(`${url}/e`, { headers: key, method: how }).then(
        ({ status, headers }) => String(headers['catraca-answer'] ?? status),
        () => 'broken',
      )
    return [await one(method), await one('GET')]
  }

  test.each<[string, string, 'end' | 'reset', string[]]>([
    ['whole', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'end', ['200', 'stale']],
    [
      'whole in chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      'end',
      ['200', 'stale'],
    ],
    ['short of its length', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok', 'end', ['broken', '429']],
    ['short of its length, reset', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok', 'reset', ['broken', '429']],
    [
      'short of its last chunk',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n',
      'end',
      ['broken', '429'],
    ],
    ['over with its connection', 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok', 'end', ['200', '429']],
    ['not modified', 'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n', 'end', ['304', '429']],
  ])('of an answer that is %s', async (_, answer, ending, expected) => {
    expect(await two(answer, ending)).toEqual(expected)
  })

  test('is none of HEAD', async () => {
    expect(await two('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n', 'end', 'HEAD')).toEqual(['200', '429'])
  })

  test('is none of an answer whose caller left in its middle', async () => {
    let finish = (): void => {}
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { 'content-length': '200000' })
      response.write('x'.repeat(100_000))
      finish = () => response.end('y'.repeat(100_000))
    })
    const { url, port } = await start(documentOf(upstream.origin, stale))
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /e HTTP/1.1\r\nHost: a\r\nX-Api-Key: secret\r\n\r\n')
    await once(socket, 'data')
    socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, 50))
    finish()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect((await ask(`${url}/e`, { headers: { ...key, host: 'a' } })).status).toBe(429)
  })

  test('stays with a reload to a longer list, and goes by the new age', async () => {
    const upstream = await startUpstream()
    const { url, gateway } = await start(documentOf(upstream.origin, stale))
    const answer = async (): Promise<unknown> => (await ask(`${url}/e`, { headers: key })).headers['catraca-answer']
    expect([await answer(), await answer()]).toEqual([undefined, 'stale'])
    await new Promise((resolve) => setTimeout(resolve, 20))
    gateway.reload(documentOf(upstream.origin, [{ stale: { maxAge: '1ms' } }, 'mark']))
    expect(await answer()).toBe('mark')
    gateway.reload(documentOf(upstream.origin, stale))
    expect(await answer()).toBe('stale')
  })
})

test('several processes and a policy that lists accept are an error at the start, in words', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'catraca-excess-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'catraca.json')
  writeFileSync(file, JSON.stringify({ ...documentOf(await deadOrigin(), ['accept']), listen: { port: 0 } }))
  const { exit, err } = run('up', '-c', file, '--workers', '2')
  expect(await exit).not.toBe(0)
  expect(err()).toContain('a policy lists accept')
  expect(err()).toContain('allowed: workers: 1, or no accept')
})

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ask, expectProblem, type Service, type ServiceName, services, start } from './helpers.ts'

/** Of each service, a route that reads a body. */
const posts: readonly [ServiceName, string][] = [
  ['inventory', '/api/holds'],
  ['order', '/orders'],
  ['assistant', '/assistant/ask'],
  ['reports', '/v1/lotes/importar'],
  ['partner', '/partner/imports'],
]

/** Sends bytes as they are and gives what comes back until the connection ends. */
async function exchange(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write(bytes)
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  return answer
}

describe.each(services)('the service %s', (name) => {
  let service: Service
  beforeAll(async () => {
    service = await start(name)
  })
  afterAll(() => service.stop())

  test('says that it is well', async () => {
    const { status, body } = await ask(`${service.url}/health`)
    expect({ status, body }).toEqual({ status: 200, body: { status: 'ok', service: name } })
  })

  test.each(['/nowhere', '/health/', '//health', '/%68ealth', '/x/../health?/health'])(
    'does not know %s',
    async (path) => {
      const answer = await exchange(service.url, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1.1 404 /)
    },
  )

  test('says which methods are allowed', async () => {
    const answer = await ask(`${service.url}/health`, 'DELETE')
    expectProblem(answer, 405)
    expect(answer.headers.get('allow')).toBe('GET, HEAD')
  })

  test('answers calls that were sent at once, in order', async () => {
    const call = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
    const calls = call('/health') + call('/nowhere') + call('/health') + call('/nowhere', 'Connection: close\r\n')
    const answer = await exchange(service.url, calls)
    expect([...answer.matchAll(/^HTTP\/1.1 (\d+)/gm)].map(([, status]) => status)).toEqual(['200', '404', '200', '404'])
  })

  test('outlives what is not HTTP', async () => {
    expect(await exchange(service.url, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /)
    expect((await ask(`${service.url}/health`)).status).toBe(200)
  })
})

describe.each(posts)('the service %s, at %s given a body', (name, path) => {
  let service: Service
  beforeAll(async () => {
    service = await start(name)
  })
  afterAll(() => service.stop())

  const length = 64 * 1024
  test.each([
    ['that is empty', '', 400],
    ['that is not JSON', '{"a":', 400],
    ['that is a list', '[]', 422],
    ['that is null', 'null', 422],
    ['without what is needed', '{}', 422],
    ['that is deep', '['.repeat(30_000) + ']'.repeat(30_000), 422],
    ['as long as allowed', `{}${' '.repeat(length - 2)}`, 422],
    ['a byte too long', `{}${' '.repeat(length - 1)}`, 413],
    ['far too long', `{}${' '.repeat(8 * length)}`, 413],
  ])('%s', async (_words, body, status) => {
    expectProblem(await ask(service.url + path, 'POST', body), status)
  })

  test('without end', async () => {
    const sent = 1024 * 1024 + 1
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 * sent}\r\n\r\n`
    expect(await exchange(service.url, head + ' '.repeat(sent))).toMatch(/^HTTP\/1.1 413 /)
  })

  test('that breaks off', async () => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{`, () => socket.destroy())
    await once(socket, 'close')
    expect((await ask(`${service.url}/health`)).status).toBe(200)
  })
})

describe('a service', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('ends on %s though connections are open', async (signal) => {
    const service = await start('catalog')
    await ask(`${service.url}/health`)
    const idle = connect(Number(new URL(service.url).port), '127.0.0.1')
    await once(idle, 'connect')
    expect(await service.stop(signal)).toBe(0)
  })

  test('ends when who started it is gone', async () => {
    const { child } = await start('catalog')
    const ended = once(child, 'exit')
    child.disconnect()
    expect(await ended).toEqual([0, null])
  })

  test('finishes what it is answering', async () => {
    const service = await start('assistant')
    const response = await fetch(`${service.url}/assistant/ask`, { method: 'POST', body: '{"question":"Where?"}' })
    const stopped = service.stop()
    expect(await response.text()).toMatch(/event: done\ndata: {}\n\n$/)
    expect(await stopped).toBe(0)
  })

  test('started by hand says where it listens', async () => {
    const file = fileURLToPath(new URL('../services/reports.mjs', import.meta.url))
    const child = spawn(process.execPath, [file], {
      env: { ...process.env, PORT: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill())
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    expect(String(line)).toMatch(/^reports listens on http:\/\/127\.0\.0\.1:\d+\n$/)
  })

  test.each(['x', '65536', '-1'])('refuses PORT=%s', (port) => {
    const file = fileURLToPath(new URL('../services/order.mjs', import.meta.url))
    const { status, stderr } = spawnSync(process.execPath, [file], {
      env: { ...process.env, PORT: port },
      encoding: 'utf8',
    })
    expect({ status, stderr }).toEqual({ status: 1, stderr: `error: PORT is "${port}"; allowed: 0 to 65535\n` })
  })
})

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parseOptions } from '../load/options.mjs'
import { schedule } from '../load/schedule.mjs'
import { Sender } from '../load/sender.mjs'

const file = fileURLToPath(new URL('../load.mjs', import.meta.url))

/** A server for one test. */
async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function spawnLoad(args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

async function load(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const child = spawnLoad(args)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout ?? []),
    text(child.stderr ?? []),
    once(child, 'exit'),
  ])
  return { code, stdout, stderr }
}

describe('load', () => {
  test('sends exactly so many and counts the answers', async () => {
    const seen: string[] = []
    const url = await listen((request, response) => {
      void text(request).then((body) => {
        const { 'x-api-key': key, 'x-more': more, 'content-type': type } = request.headers
        seen.push([request.method, request.url, body, key, more, type].join(' '))
        response.writeHead(seen.length % 10 === 0 ? 201 : 429).end('{}')
      })
    })
    const flags = ['--rate', '500', '--seconds', '0.5', '--method', 'POST', '--path', '/api/holds', '--key', 'K']
    const more = ['--header', 'X-More: a: b', '--body', '{"eventId":{n}}', '--url', url]
    expect(await load(...flags, ...more)).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^250 sent in \d+\.\d s\n201 {3}25\n429 {2}225\nerrors 0\n$/),
      stderr: '',
    })
    const expected = Array.from(
      { length: 250 },
      (_, index) => `POST /api/holds {"eventId":${1 + (index % 199)}} K a: b application/json`,
    )
    expect(seen.toSorted()).toEqual(expected.toSorted())
  })

  test('prints JSON', async () => {
    const paths: string[] = []
    const url = await listen((request, response) => {
      paths.push(request.url ?? '')
      if (request.url === '/2') response.destroy()
      else response.writeHead(request.url === '/1' ? 404 : 200).end()
    })
    const { code, stdout } = await load('--rate', '50', '--seconds', '0.1', '--path', '/{n}', '--url', url, '--json')
    expect({ code, result: JSON.parse(stdout) as unknown }).toEqual({
      code: 0,
      result: {
        sent: 5,
        seconds: expect.any(Number),
        statuses: { 200: 3, 404: 1 },
        errors: 1,
        reasons: { ECONNRESET: 1 },
        unanswered: 0,
      },
    })
    expect(paths.toSorted()).toEqual(['/1', '/2', '/3', '/4', '/5'])
  })

  test('says what was done so far when it is interrupted', async () => {
    let calls = 0
    const url = await listen((_request, response) => {
      calls += 1
      response.end()
    })
    const child = spawnLoad(['--rate', '100', '--seconds', '100', '--url', url])
    const output = text(child.stdout ?? [])
    await vi.waitFor(() => expect(calls).toBeGreaterThan(4), 10_000)
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([130, null])
    expect(await output).toMatch(/^\d+ sent in \d+\.\d s\n200 {2}\d+\nerrors 0\n/)
  })

  test('ends with 1 when nothing answers', async () => {
    const { code, stdout } = await load('--rate', '10', '--seconds', '0.2', '--url', 'http://127.0.0.1:1')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^2 sent in 0\.\d s\nerrors 2 \(ECONNREFUSED 2\)\n$/)
  })

  test('explains itself', async () => {
    const { code, stdout } = await load('--help')
    expect(code).toBe(0)
    expect(stdout).toContain('Examples:')
  })

  test('says in a line which flag is wrong', async () => {
    expect(await load('--rate', 'fast')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'load: --rate is "fast"; allowed: a number above 0; --help shows all flags\n',
    })
  })
})

describe('the flags', () => {
  test.each([
    ['--rate 0', '--rate is "0"'],
    ['--rate 1e3', '--rate is "1e3"'],
    ['--rate', "'--rate <value>' argument missing"],
    ['--seconds -1', "'--seconds' argument is ambiguous"],
    ['--rate 9999999 --seconds 10', 'requests; allowed: 1 to 1000000'],
    ['--fast', "Unknown option '--fast'"],
    ['fast', "Unexpected argument 'fast'"],
    ['--method BREW', '--method is "BREW"'],
    ['--path events', '--path is "events"'],
    ['--header x', '--header is "x"'],
    ['--header Content-Length:5', '--header cannot set Content-Length'],
    ['--key \n', '--key has a character'],
    ['--url localhost:8080', '--url is "localhost:8080"'],
    ['--url https://localhost', '--url is "https://localhost"'],
    ['--url http://localhost/x', 'goes into --path'],
    ['--url http://u:p@localhost', 'goes into --path'],
    ['--url http://example.com', 'this machine only'],
    ['--url http://0.0.0.0', 'this machine only'],
    ['--url http://10.0.0.1:8080', 'this machine only'],
    ['--url http://localhost.example.com', 'this machine only'],
    ['--url http://127.0.0.1@example.com', 'this machine only'],
    ['--url http://[::ffff:1.2.3.4]', 'this machine only'],
  ])('refuse %j', (line, message) => {
    const refuse = (): unknown => parseOptions(line.split(' '))
    expect(refuse).toThrow(message)
    expect(refuse).toThrow(/^.+$/)
  })

  test.each(['http://127.0.0.1:1', 'http://localhost', 'http://[::1]:8080/'])('allow %s', (url) => {
    expect(parseOptions(['--url', url])).toMatchObject({ count: 500, url: new URL(url) })
  })
})

describe('the schedule', () => {
  test('catches up in small parts after a pause', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const sentAt: number[] = []
    let now = 0
    const pass = async (ms: number): Promise<void> => {
      now += ms
      await vi.advanceTimersByTimeAsync(ms)
    }
    const { signal } = new AbortController()
    const done = schedule({ rate: 500, count: 200, send: () => sentAt.push(now), signal, now: () => now })
    for (let step = 0; step < 10; step += 1) await pass(2)
    expect(sentAt).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20])
    // The process stands still: the clock goes on and no timer fires.
    now += 200
    while (sentAt.length < 200) await pass(1)
    await done
    for (const at of new Set(sentAt)) expect(sentAt.filter((other) => other === at).length).toBeLessThanOrEqual(10)
    // Nothing is shifted: the last one leaves when it would have left without the pause.
    expect(sentAt.at(-1)).toBe(398)
  })

  test('ends early', async () => {
    const stop = new AbortController()
    const sent: number[] = []
    const send = (index: number): void => {
      sent.push(index)
      stop.abort()
    }
    await schedule({ rate: 1, count: 100, send, signal: stop.signal })
    expect(sent).toEqual([0])
  })
})

describe('the sender', () => {
  test('does not wait for ever', async () => {
    const url = await listen(() => {})
    const sender = new Sender(parseOptions(['--url', url]))
    sender.send(0)
    await sender.idle(50, new AbortController().signal)
    expect([sender.sent, sender.unanswered]).toEqual([1, 1])
  })
})

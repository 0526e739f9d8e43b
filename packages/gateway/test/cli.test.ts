import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { run, up } from './command.ts'
import { ask, deadOrigin, readAll, startTcp, startUpstream, until } from './helpers.ts'

describe('the command line', () => {
  test('prints help with every flag and examples', async () => {
    const { exit, out } = run('up', '--help')
    expect(await exit).toBe(0)
    for (const flag of ['--upstream', '--limit', '--burst', '--per', '--trust', '--port', '--host'])
      expect(out()).toMatch(flag)
    expect(out()).toMatch(/Examples:\n[^]*catraca up --upstream http:\/\/127\.0\.0\.1:3000/)
    const top = run('--help')
    expect(await top.exit).toBe(0)
    expect(top.out()).toMatch(/catraca up --upstream/)
  })

  test('prints the version', async () => {
    const { exit, out } = run('--version')
    expect(await exit).toBe(0)
    expect(out()).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  test.each([
    [['--limit', '600'], "'--limit <requests/time>' argument '600' is invalid. Allowed: requests"],
    [['--limit', '0/1m'], "argument '0/1m' is invalid"],
    [['--limit', '10/1x'], "argument '10/1x' is invalid"],
    [['--limit', '1.5/1s'], "argument '1.5/1s' is invalid"],
    [['--burst', '0'], "'--burst <requests>' argument '0' is invalid. Allowed: a whole number from 1"],
    [['--per', 'ip'], "'--per <what>' argument 'ip' is invalid. Allowed: address, or header:"],
    [['--per', 'header:'], "argument 'header:' is invalid"],
    [['--trust', '-1'], "'--trust <proxies>' argument '-1' is invalid. Allowed: a whole number from 0 to 32"],
    [['--port', '65536'], "'--port <port>' argument '65536' is invalid. Allowed: a whole number from 0 to 65535"],
    [['--upstream', 'localhost:3000'], "'--upstream <origin>' argument 'localhost:3000' is invalid. Allowed: an http"],
    [['--upstream', 'http://a.example/path'], 'an http or https origin without a path'],
  ])('%j ends with code 2 and one line that says what is allowed', async (flags, words) => {
    const { exit, out, err } = run('up', '--upstream', 'http://127.0.0.1:1', ...flags)
    expect(await exit).toBe(2)
    expect(out()).toBe('')
    expect(err()).toMatch(/^error: [^\n]+\n$/)
    expect(err()).toContain(words)
  })

  test.each([
    [['up'], "required option '--upstream <origin>' not specified"],
    [['up', '--upsteam', 'http://127.0.0.1:1'], 'Did you mean --upstream?'],
    [['upp'], 'Did you mean up?'],
    [[], 'Usage: catraca'],
  ])('%j ends with code 2 and a hint', async (args, words) => {
    const { exit, err } = run(...args)
    expect(await exit).toBe(2)
    expect(err()).toContain(words)
  })

  test('a rule that cannot be counted exactly ends with code 2', async () => {
    const tooFine = ['--limit', '999999999999/36500d', '--burst', '1000000000000']
    const { exit, err } = run('up', '--upstream', 'http://127.0.0.1:1', ...tooFine)
    expect(await exit).toBe(2)
    expect(err()).toMatch(/^error: .* allowed: a smaller limit or burst.*\n$/)
  })

  test('a port that is taken ends with code 1 and a way out', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const { exit, err } = run('up', '--upstream', 'http://127.0.0.1:1', '--port', String(port))
    expect(await exit).toBe(1)
    expect(err()).toBe(`error: port ${port} is already in use; choose another with --port\n`)
  })

  test('an address of another machine ends with code 1', async () => {
    const { exit, err } = run('up', '--upstream', 'http://127.0.0.1:1', '--port', '0', '--host', '192.0.2.1')
    expect(await exit).toBe(1)
    expect(err()).toBe('error: 192.0.2.1 is not an address of this machine; choose another with --host\n')
  })
})

describe('a running gateway', () => {
  test('says where it listens, what it limits, and at the end what it counted', async () => {
    const upstream = await startUpstream()
    const { url, child, out, err, exit } = await up('--upstream', upstream.origin, '--limit', '2/1d')
    const statuses = [(await ask(url)).status, (await ask(url)).status, (await ask(url)).status]
    expect(statuses).toEqual([200, 200, 429])
    child.kill('SIGINT')
    expect(await exit).toBe(0)
    expect(out()).toContain(`upstream  ${upstream.origin}\n`)
    expect(out()).toContain('limit     address: 2 per day, bursts of up to 2, for each address\n')
    expect(out()).toMatch(/\nstopped; 2 admitted, 1 refused\n$/)
    expect(err()).toBe('')
  })

  test('counts by header', async () => {
    const { url } = await up(
      '--upstream',
      (await startUpstream()).origin,
      '--limit',
      '1/1d',
      '--per',
      'header:x-api-key',
    )
    const status = (key: string): Promise<number> => ask(url, { headers: { 'X-Api-Key': key } }).then((a) => a.status)
    expect([await status('a'), await status('b'), await status('a')]).toEqual([200, 200, 429])
  })

  test('counts by forwarded address', async () => {
    const { url } = await up('--upstream', (await startUpstream()).origin, '--limit', '1/1d', '--trust', '1')
    const status = (chain: string): Promise<number> =>
      ask(url, { headers: { 'X-Forwarded-For': chain } }).then((a) => a.status)
    expect([await status('1.1.1.1'), await status('2.2.2.2'), await status('2.2.2.2, 1.1.1.1')]).toEqual([
      200, 200, 429,
    ])
  })

  test('prints a line when numbers change', async () => {
    const { url, out } = await up('--upstream', (await startUpstream()).origin)
    await ask(url)
    await until(() => /\nadmitted 1 {2}refused 0\n/.test(out()))
  })

  test('starts before its upstream and warns once', async () => {
    const origin = await deadOrigin()
    const { url, child, err, exit } = await up('--upstream', origin)
    await until(() => err() !== '')
    expect(err()).toBe(
      `warning: upstream ${origin} refused the connection; requests are answered 502 or 504 until it works\n`,
    )
    expect([(await ask(url)).status, (await ask(url)).status]).toEqual([502, 502])
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
    expect(err().split('\n').slice(1)).toEqual([`warning: upstream ${origin} refused the connection`, ''])
  })

  test('lets a running request end when it is asked to stop', async () => {
    let finish = (): void => {}
    const upstream = await startUpstream((_, response) => {
      response.write('first, ')
      finish = () => response.end('last')
    })
    const { url, child, exit } = await up('--upstream', upstream.origin)
    const outgoing = request(url, { agent: false, headers: { Connection: 'keep-alive' } }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    child.kill('SIGTERM')
    await refused(url)
    finish()
    expect((await readAll(incoming)).toString()).toBe('first, last')
    expect(await exit).toBe(0)
  })

  test('ends at once when it is asked twice', async () => {
    let arrived = false
    const silent = await startTcp((socket) => socket.once('data', () => (arrived = true)))
    const { url, child, exit } = await up('--upstream', silent)
    const broken = ask(url).catch((error: NodeJS.ErrnoException) => error.code)
    await until(() => arrived)
    child.kill('SIGINT')
    await refused(url)
    child.kill('SIGINT')
    expect(await exit).toBe(1)
    expect(await broken).toBe('ECONNRESET')
  })
})

/** Resolves when nothing listens there any more. */
async function refused(url: string): Promise<void> {
  const port = Number(new URL(url).port)
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
    } catch {
      return
    } finally {
      socket.destroy()
    }
  }
}

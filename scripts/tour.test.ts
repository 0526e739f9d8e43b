import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The addresses in the tour; a test uses free ports instead. */
const tourAddresses = ['http://127.0.0.1:8080', 'http://127.0.0.1:8081', 'http://127.0.0.1:8082']

interface Started {
  readonly child: ChildProcess
  readonly url: string
  /** The edges that share a Redis. */
  readonly edges: string[]
  /** Where the services listen. */
  readonly upstreams: string[]
  /** What was printed, up to the last line of the introduction. */
  readonly introduction: string
}

/** Runs what `npm start` runs, on free ports, without installing or building. */
async function start(...flags: string[]): Promise<Started> {
  const child = spawn(process.execPath, ['scripts/start.mjs', '--no-build', ...flags], {
    cwd: root,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  let introduction = ''
  // It goes on being read: a process whose reader is gone ends.
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      introduction += String(chunk)
      if (introduction.includes('Ctrl-C')) resolve()
    })
    child.once('exit', (code) => reject(new Error(`npm start ended with ${code}: ${introduction}`)))
  })
  const edges = [...introduction.matchAll(/^ +edge \d+ +(\S+)$/gm)].map(([, url = '']) => url)
  const find = (pattern: RegExp): string => pattern.exec(introduction)?.[1] ?? `not found: ${introduction}`
  const upstreams = [...introduction.matchAll(/upstream +(\S+)/g)].map(([, url = '']) => url)
  const url = edges[0] ?? find(/listens on (\S+)/)
  return { child, url, edges, upstreams, introduction }
}

/** Runs a command line as it is typed and gives the lines that come back. */
async function play(command: string, variables: Record<string, string> = {}): Promise<string[]> {
  const shell = spawn('bash', ['-uc', `exec 2>&1\n${command}`], {
    cwd: root,
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  for await (const chunk of shell.stdout) output += String(chunk)
  return output.trimEnd().split(/\r?\n/)
}

/** Lines as the tour shows them, as a pattern: `…` is anything within a line, or alone any number of lines. */
function pattern(lines: readonly string[]): RegExp {
  const source = lines.map((line) => {
    if (line === '…') return '(?:.*\n)*?'
    return `${line
      .split('…')
      .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}\n`
  })
  return new RegExp(`^${source.join('')}$`)
}

interface Stop {
  readonly title: string
  readonly command: string
  readonly lines: string[]
}

/** The stops of the page: a heading, and the command and its lines in the block below. */
function stops(page: string): Stop[] {
  return [...page.matchAll(/^## (.+)\n[^]*?```console\n\$ (.+)\n([^]*?)\n```$/gm)].map(
    ([, title = '', command = '', lines = '']) => ({ title, command, lines: lines.split('\n') }),
  )
}

const tour = readFileSync(`${root}/docs/tour.md`, 'utf8')

beforeAll(() => {
  if (spawnSync('curl', ['--version']).status !== 0) throw new Error('curl is needed to play the tour; install curl')
})

describe('docs/tour.md', () => {
  test('has a command below every heading', () => {
    expect(stops(tour).map(({ title }) => title)).toEqual([...tour.matchAll(/^## (.+)$/gm)].map(([, title]) => title))
  })

  test.each(stops(tour).map((stop) => [stop.title, stop] as const))('%s', async (_title, { command, lines }) => {
    const shared = tourAddresses.slice(1).some((address) => command.includes(address))
    const { url, edges, introduction } = await start(...(shared ? ['--shared'] : []))
    const find = (kill: string): string => new RegExp(`kill -${kill} (\\d+)`).exec(introduction)?.[1] ?? ''
    const variables: Record<string, string> = shared ? { REDIS_PID: find('9'), START_PID: find('USR2') } : {}
    const urls = shared ? edges : [url]
    const typed = tourAddresses.reduce((text, address, index) => text.replaceAll(address, urls[index] ?? ''), command)
    const output = await play(typed, variables)
    expect(`${output.join('\n')}\n`).toMatch(pattern(lines))
  })
})

describe('npm start', () => {
  test('prints a normal call that is answered 200', async () => {
    const [call] = commands(await start())
    const output = await play(call ?? '')
    expect(output).toContain('HTTP/1.1 200 OK')
    expect(output.at(-1)).toMatch(/"id":7,/)
  })

  test('prints a loop of which the first ten pass', async () => {
    const [, loop] = commands(await start())
    const output = await play(loop ?? '')
    expect(output).toEqual([...Array<string>(10).fill('200'), '429', '429'])
  })

  test('prints how to see what is left', async () => {
    const [, , status] = commands(await start())
    const [json = ''] = await play(status ?? '')
    const { policies } = JSON.parse(json) as { policies: { policy: string; remaining: number }[] }
    expect(policies.find(({ policy }) => policy === 'per-client')?.remaining).toBe(10)
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('ends everything on %s', async (signal) => {
    const { child, url, upstreams } = await start()
    expect(upstreams).toHaveLength(6)
    const listening = (): Promise<boolean[]> => Promise.all([url, ...upstreams].map(listens))
    expect(await listening()).toEqual(Array(7).fill(true))
    child.kill(signal)
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(await listening()).toEqual(Array(7).fill(false))
  })

  test('leaves no process behind when it is killed', async () => {
    const { child, url, upstreams } = await start()
    child.kill('SIGKILL')
    for (const one of [url, ...upstreams]) while (await listens(one));
  })

  test('says which port is taken', async () => {
    const { url } = await start()
    const { port } = new URL(url)
    const second = spawnSync(process.execPath, ['scripts/start.mjs', '--no-build'], {
      cwd: root,
      env: { ...process.env, PORT: port },
      encoding: 'utf8',
    })
    expect(second.status).toBe(1)
    expect(second.stderr).toBe(`catraca: port ${port} is already in use; choose another: PORT=8081 npm start\n`)
  })
})

describe('npm start -- --shared', () => {
  test('prints a loop over all edges of which four pass', async () => {
    const { introduction } = await start('--shared', '2')
    const loop = /^ {4}(for url in .+)$/m.exec(introduction)?.[1] ?? ''
    expect(await play(loop)).toEqual(['201', '201', '201', '201'])
    expect(await play(loop)).toEqual(Array(4).fill('429'))
  })

  test.each(['SIGTERM', 'SIGKILL'] as const)('leaves no process behind on %s', async (signal) => {
    const { child, edges, introduction } = await start('--shared')
    const redis = /redis:(\/\/\S+:\d+)/.exec(introduction)?.[1] ?? ''
    const all = [`http:${redis}`, ...edges]
    expect(await Promise.all(all.map(listens))).toEqual(Array(4).fill(true))
    child.kill(signal)
    expect(await once(child, 'exit')).toEqual(signal === 'SIGTERM' ? [0, null] : [null, signal])
    for (const one of all) while (await listens(one));
  })

  test.each(['0', '21', 'many'])('says what is allowed in place of %s', (count) => {
    const child = spawnSync(process.execPath, ['scripts/start.mjs', '--no-build', '--shared', count], { cwd: root })
    expect([child.status, String(child.stderr)]).toEqual([
      1,
      `catraca: --shared is "${count}"; allowed: 1 to 20 edges\n`,
    ])
  })
})

/** The indented commands of the introduction, in order. */
function commands({ introduction }: Started): string[] {
  return [...introduction.matchAll(/^ {4}(curl .+)$/gm)].map(([, command = '']) => command)
}

/** True when something takes connections there. */
async function listens(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

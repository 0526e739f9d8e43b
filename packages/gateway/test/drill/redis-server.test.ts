import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findRedisServer, searchRedisServer } from '../../src/drill/redis-server.ts'

const missing = 'redis-server is needed and cannot be fetched here; install it (apt-get install redis-server), or set'
const debian = where('dpkg-deb') ?? ''

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'catraca-drill-test-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function script(path: string, text: string): string {
  writeFileSync(path, `#!/bin/sh\n${text}\n`)
  chmodSync(path, 0o755)
  return path
}

interface Machine {
  readonly env: Record<string, string>
  /** A folder on its PATH. */
  readonly bin: string
  /** What its apt-get was asked, a line each. */
  readonly asked: () => string[]
  readonly said: string[]
  readonly say: (line: string) => void
}

function where(name: string): string | undefined {
  const paths = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name))
  return paths.find((path) => existsSync(path))
}

/** An environment with tools of this machine but no redis-server; `apt` is the body of its apt-get. */
function machine(apt: string): Machine {
  const home = folder()
  const [bin, log] = [join(home, 'bin'), join(home, 'apt.log')]
  mkdirSync(bin)
  writeFileSync(log, '')
  for (const name of ['sh', 'dpkg', 'dpkg-deb', 'tar', 'cp', 'chmod', 'touch']) {
    const path = where(name)
    if (path !== undefined) symlinkSync(path, join(bin, name))
  }
  script(join(bin, 'apt-get'), `echo "$DEBIAN_FRONTEND $*" >> ${log}\n${apt}`)
  const said: string[] = []
  const asked = (): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1)
  return {
    env: { PATH: bin, XDG_CACHE_HOME: join(home, 'cache') },
    bin,
    asked,
    said,
    say: (line) => void said.push(line),
  }
}

/** A Debian package in `dir` with this machine's redis-server and a library that is none. */
async function pack(dir: string): Promise<void> {
  const { path } = await findRedisServer()
  const tree = join(dir, 'tree')
  mkdirSync(join(tree, 'DEBIAN'), { recursive: true })
  mkdirSync(join(tree, 'usr/bin'), { recursive: true })
  mkdirSync(join(tree, 'usr/lib/any'), { recursive: true })
  cpSync(realpathSync(path), join(tree, 'usr/bin/redis-server'))
  writeFileSync(join(tree, 'usr/lib/any/libnone.so.1'), '')
  const about = [
    'Package: redis-server',
    'Version: 1',
    'Architecture: all',
    'Maintainer: none',
    'Description: none',
    '',
  ]
  writeFileSync(join(tree, 'DEBIAN/control'), about.join('\n'))
  execFileSync(debian, ['-b', '-Znone', tree, join(dir, 'redis-server.deb')], { stdio: 'ignore' })
}

describe('findRedisServer', () => {
  it('gives a server that runs, the same each time', async () => {
    const server = await findRedisServer()
    const version = execFileSync(server.path, ['--version'], { env: { ...process.env, ...server.env } })
    expect(version.toString()).toMatch(/v=\d+\.\d+/)
    expect(await findRedisServer()).toBe(server)
  })
})

describe('searchRedisServer', () => {
  it('takes what CATRACA_REDIS_SERVER names before all else', async () => {
    const dir = folder()
    const path = script(join(dir, 'redis'), 'echo Redis server v=9.9.9')
    const cli = script(join(dir, 'redis-cli'), 'exit 0')
    expect(await searchRedisServer({ env: { ...process.env, CATRACA_REDIS_SERVER: path } })).toEqual({
      path,
      cli,
      env: {},
    })
  })

  it.each([
    ['is not there', '/none/redis-server', 'ENOENT'],
    ['is another program', '/bin/echo', '--version'],
  ])('says what is wrong with CATRACA_REDIS_SERVER when it %s', async (_, path, why) => {
    const search = searchRedisServer({ env: { ...process.env, CATRACA_REDIS_SERVER: path } })
    await expect(search).rejects.toThrow(`CATRACA_REDIS_SERVER is "${path}", which does not run: `)
    await expect(search).rejects.toThrow(why)
  })

  it('takes the first on the PATH that runs, and asks nobody', async () => {
    const { env, bin, asked, say, said } = machine('exit 1')
    const broken = folder()
    script(join(broken, 'redis-server'), 'exit 1')
    const path = script(join(bin, 'redis-server'), 'echo Redis server v=9.9.9')
    const found = await searchRedisServer({ env: { ...env, PATH: `${broken}:${bin}` }, say })
    expect([found, asked(), said]).toEqual([{ path, cli: undefined, env: {} }, [], []])
  })

  it.skipIf(existsSync('/run/systemd/system'))(
    'installs as root, once more after an update when that fails',
    async () => {
      const fake = '#!/bin/sh\\necho Redis server v=9.9.9\\n'
      const { env, bin, asked, say, said } = machine(`
      case "$1" in
        update) touch "$0.updated" ;;
        install) [ -e "$0.updated" ] && printf '${fake}' > "\${0%/*}/redis-server" && chmod +x "\${0%/*}/redis-server" ;;
      esac`)
      const { path } = await searchRedisServer({ env, root: true, say })
      expect(path).toBe(join(bin, 'redis-server'))
      const install = 'noninteractive install -y -qq --no-install-recommends redis-server'
      expect(asked()).toEqual([install, 'noninteractive update -qq', install])
      expect(said).toEqual(['installing redis-server from Debian (once)'])
    },
  )

  it.skipIf(debian === '')('unpacks packages into the cache without root, once', async () => {
    const debs = folder()
    await pack(debs)
    const { env, asked, say, said } = machine(`[ "$1" = download ] && cp ${debs}/*.deb .`)
    const server = await searchRedisServer({ env, root: false, say })
    const cache = join(env['XDG_CACHE_HOME']!, 'catraca/redis')
    expect(server.path).toBe(join(cache, 'usr/bin/redis-server'))
    expect(server.env).toEqual({ LD_LIBRARY_PATH: join(cache, 'usr/lib/any') })
    expect(asked()).toEqual(['noninteractive download -qq redis-server redis-tools'])
    expect(said).toEqual([`unpacking redis-server from Debian into ${cache} (once)`])
    expect(await searchRedisServer({ env, root: false, say })).toEqual(server)
    expect([asked().length, said.length]).toEqual([1, 1])
  })

  it.skipIf(debian === '')('renews package lists of its own when a download fails', async () => {
    const debs = folder()
    await pack(debs)
    const { env, asked } = machine(`
      case "$1 $*" in
        update*) touch "$0.updated" ;;
        download*Dir::State=*) [ -e "$0.updated" ] && cp ${debs}/*.deb . ;;
        *) exit 100 ;;
      esac`)
    const { path } = await searchRedisServer({ env, root: false })
    expect(path).toContain('catraca/redis/usr/bin/redis-server')
    expect(asked().map((line) => line.split(' ')[1])).toEqual(['download', 'update', 'download'])
  })

  it.each([true, false])('says what to do when nothing can be fetched (root: %s)', async (root) => {
    const { env } = machine('exit 100')
    await expect(searchRedisServer({ env, root })).rejects.toThrow(missing)
    await expect(searchRedisServer({ env: { ...env, PATH: '' }, root })).rejects.toThrow(missing)
  })
})

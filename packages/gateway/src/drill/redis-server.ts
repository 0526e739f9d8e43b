import { execFile } from 'node:child_process'
import { access, constants, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const exec = promisify(execFile)
const quickMs = 10_000
const aptMs = 300_000

export interface RedisServer {
  readonly path: string
  /** The path of redis-cli, where there is one. */
  readonly cli: string | undefined
  /** What both need in their environment. */
  readonly env: Record<string, string>
}

export interface FindOptions {
  /** Takes a line before each step that takes long. Default: none is said. */
  readonly say?: (line: string) => void
}

export interface SearchOptions extends FindOptions {
  /** Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv
  /** Whether it may install for the whole machine. Default: as root. */
  readonly root?: boolean
}

let found: Promise<RedisServer> | undefined

/**
 * Where redis-server is: what CATRACA_REDIS_SERVER names, else on the PATH, else installed by apt-get as root, else
 * unpacked from Debian's packages into `catraca/redis` in the user's cache. Looks once per process, again after a
 * failure. Rejects with what to do when there is none and none can be fetched. The last two need the network and take
 * up to minutes.
 */
export function findRedisServer(options: FindOptions = {}): Promise<RedisServer> {
  found ??= searchRedisServer(options).catch((error: unknown) => {
    found = undefined
    throw error
  })
  return found
}

/** As {@link findRedisServer}, and looks every time. */
export async function searchRedisServer(options: SearchOptions = {}): Promise<RedisServer> {
  const { say = () => {}, env = process.env, root = process.getuid?.() === 0 } = options
  const named = env['CATRACA_REDIS_SERVER']
  if (named !== undefined && named !== '') {
    const wrong = await whyNot(named, {})
    if (wrong !== undefined) throw new Error(`CATRACA_REDIS_SERVER is "${named}", which does not run: ${wrong}`)
    return { path: named, cli: await runnable([join(dirname(named), 'redis-cli')]), env: {} }
  }
  const present = (await onPath(env)) ?? (root && (await install(env, say)) ? await onPath(env) : undefined)
  const server = present ?? (await unpacked(env, say))
  if (server !== undefined) return server
  throw new Error(
    'redis-server is needed and cannot be fetched here; install it (apt-get install redis-server), ' +
      'or set CATRACA_REDIS_SERVER to its path',
  )
}

async function onPath(env: NodeJS.ProcessEnv): Promise<RedisServer | undefined> {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const path = await runnable(folders.map((folder) => join(folder, 'redis-server')))
  if (path === undefined) return undefined
  return { path, cli: await runnable(folders.map((folder) => join(folder, 'redis-cli'))), env: {} }
}

/** Gives whether apt-get installed it. Does not where systemd runs: the service would start with the machine. */
async function install(env: NodeJS.ProcessEnv, say: (line: string) => void): Promise<boolean> {
  if (await exists('/run/systemd/system')) return false
  say('installing redis-server from Debian (once)')
  const args = ['install', '-y', '-qq', '--no-install-recommends', 'redis-server']
  const removePolicy = await forbidServices()
  try {
    if (await apt(args, env)) return true
    await apt(['update', '-qq'], env)
    return await apt(args, env)
  } finally {
    await removePolicy()
  }
}

/** Debian starts a service when it installs it, unless this file says 101. One that is there is left as it is. */
async function forbidServices(): Promise<() => Promise<void>> {
  const file = '/usr/sbin/policy-rc.d'
  // Left behind by a crash it forbids nothing.
  const script = `#!/bin/sh\nkill -0 ${process.pid} 2>/dev/null && exit 101\nexit 0\n`
  try {
    await writeFile(file, script, { flag: 'wx', mode: 0o755 })
  } catch {
    return async () => {}
  }
  return () => rm(file, { force: true })
}

/** The one in the user's cache, fetched there first where it is missing. */
async function unpacked(env: NodeJS.ProcessEnv, say: (line: string) => void): Promise<RedisServer | undefined> {
  const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache')
  const folder = join(cache, 'catraca/redis')
  const present = await serverIn(folder)
  if (present !== undefined) return present
  if (!(await succeeds('dpkg', ['--version'], env))) return undefined
  say(`unpacking redis-server from Debian into ${folder} (once)`)
  try {
    await mkdir(dirname(folder), { recursive: true })
  } catch {
    return undefined
  }
  const draft = await mkdtemp(`${folder}-`)
  try {
    if (!(await fetchPackages(draft, env))) return undefined
    await rm(folder, { recursive: true, force: true })
    // Another process may have been faster; what counts is what is there.
    await rename(join(draft, 'root'), folder).catch(() => {})
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  return serverIn(folder)
}

async function serverIn(folder: string): Promise<RedisServer | undefined> {
  const path = join(folder, 'usr/bin/redis-server')
  const libraries = await libraryFolders(folder)
  const env: Record<string, string> = libraries.length === 0 ? {} : { LD_LIBRARY_PATH: libraries.join(':') }
  if ((await whyNot(path, env)) !== undefined) return undefined
  return { path, cli: await runnable([join(folder, 'usr/bin/redis-cli')], env), env }
}

/** Fetches the server, then what its packages depend on for as long as a library is missing, into `draft/root`. */
async function fetchPackages(draft: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const root = join(draft, 'root')
  const settings: string[] = []
  const fetched = new Set<string>()
  let wanted = ['redis-server', 'redis-tools']
  for (let depth = 0; depth < 4; depth++) {
    for (const name of wanted) fetched.add(name)
    if (!(await fetchOnto(draft, root, wanted, env, settings))) {
      if (depth > 0) return false
      // Lists of its own: those of the machine are old or missing, and only root may renew them.
      settings.push('-o', `Dir::State=${draft}/state`, '-o', `Dir::Cache=${draft}/cache`)
      settings.push('-o', 'Dir::State::status=/var/lib/dpkg/status')
      await mkdir(join(draft, 'state/lists/partial'), { recursive: true })
      await mkdir(join(draft, 'cache/archives/partial'), { recursive: true })
      await apt(['update', '-qq', ...settings], env)
      if (!(await fetchOnto(draft, root, wanted, env, settings))) return false
    }
    if ((await serverIn(root)) !== undefined) return true
    wanted = (await libraryPackages(wanted, env, settings)).filter((name) => !fetched.has(name))
  }
  return false
}

async function fetchOnto(
  draft: string,
  root: string,
  names: readonly string[],
  env: NodeJS.ProcessEnv,
  settings: readonly string[],
): Promise<boolean> {
  const debs = await mkdtemp(join(draft, 'debs-'))
  if (!(await apt(['download', '-qq', ...settings, ...names], env, debs))) return false
  for (const deb of await readdir(debs)) {
    if (!(await succeeds('dpkg', ['-x', join(debs, deb), root], env))) return false
  }
  return true
}

/** The packages with libraries that `names` depend on. Those of the C and C++ compilers are there: Node needs them. */
async function libraryPackages(
  names: readonly string[],
  env: NodeJS.ProcessEnv,
  settings: readonly string[],
): Promise<string[]> {
  const args = [...settings, 'depends', '--important', ...names]
  const { stdout } = await exec('apt-cache', args, { env, timeout: quickMs }).catch(() => ({ stdout: '' }))
  const all = [...stdout.matchAll(/^ *\|?(?:Pre)?Depends: ((?:lib|lua)[^\s:]+)/gm)].map(([, name = '']) => name)
  return [...new Set(all)].filter((name) => !/^lib(?:c6|gcc|stdc)/.test(name))
}

async function libraryFolders(folder: string): Promise<string[]> {
  const folders = new Set<string>()
  const entries = await readdir(folder, { recursive: true }).catch(() => [])
  for (const entry of entries) if (/\.so(?:\.|$)/.test(entry)) folders.add(join(folder, dirname(entry)))
  return [...folders].toSorted()
}

/** Gives undefined, or in words why `path` does not run as a redis-server. */
async function whyNot(path: string, env: Record<string, string>): Promise<string | undefined> {
  try {
    const { stdout } = await exec(path, ['--version'], { env: { ...process.env, ...env }, timeout: quickMs })
    return /v=\d/.test(stdout) ? undefined : `it says "${stdout.trim().slice(0, 80)}" for --version`
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string }
    return stderr?.trim() || String(code)
  }
}

/** The first of `paths` that runs. */
async function runnable(paths: readonly string[], env: Record<string, string> = {}): Promise<string | undefined> {
  for (const path of paths) {
    if (await succeeds(path, ['--version'], { ...process.env, ...env })) return path
  }
  return undefined
}

function apt(args: readonly string[], env: NodeJS.ProcessEnv, cwd?: string): Promise<boolean> {
  return succeeds('apt-get', args, { ...env, DEBIAN_FRONTEND: 'noninteractive' }, { timeout: aptMs, cwd })
}

async function succeeds(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { timeout = quickMs, cwd }: { timeout?: number; cwd?: string | undefined } = {},
): Promise<boolean> {
  try {
    await exec(command, [...args], { env, timeout, ...(cwd === undefined ? {} : { cwd }) })
    return true
  } catch {
    return false
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(
    () => true,
    () => false,
  )
}

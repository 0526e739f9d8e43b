import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))
const stampFile = join(root, '.cache/install')

/** Installs what package-lock.json names, unless that was done before. Works offline from then on. */
export function setup() {
  requireNode()
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
  const done = existsSync(stampFile) && readFileSync(stampFile, 'utf8') === lock
  if (done && existsSync(join(root, 'node_modules'))) return
  say('installing packages (once; about 20 s)')
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel', 'error'])
  writeStamp(stampFile, lock)
}

/** Installs a Debian package when its command is missing; says how to do it where it cannot. */
export function setupCommand(command, debianPackage) {
  if (spawnSync('sh', ['-c', `command -v ${command}`]).status === 0) return
  say(`installing ${debianPackage} from Debian (once)`)
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  const install = [...asRoot, 'apt-get', 'install', '-y', '-qq', '--no-install-recommends', debianPackage]
  const quiet = { stdio: 'ignore' }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const first = spawnSync(install[0], install.slice(1), { ...quiet, env })
  if (first.status === 0) return
  const update = [...asRoot, 'apt-get', 'update', '-qq']
  spawnSync(update[0], update.slice(1), quiet)
  if (spawnSync(install[0], install.slice(1), { ...quiet, env }).status === 0) return
  fail(`${command} is needed; install it with: apt-get install ${debianPackage}`)
}

/** Finds a redis-server, or installs one, before several tests want it at once. The packages must be built. */
export async function setupRedis() {
  const { findRedisServer } = await import(pathToFileURL(join(root, 'packages/gateway/dist/redis-server.js')).href)
  await findRedisServer({ say }).catch((error) => fail(error.message))
}

/** Runs a command in the root and ends the process with its code when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options })
  if (result.error !== undefined) fail(`${command} cannot be run: ${result.error.message}`)
  if (result.status !== 0) process.exit(result.status ?? 1)
}

/** The path of a tool that npm installed. */
export function tool(name) {
  return join(root, 'node_modules/.bin', name)
}

export function writeStamp(file, text) {
  mkdirSync(join(root, '.cache'), { recursive: true })
  writeFileSync(file, text)
}

export function say(text) {
  process.stderr.write(`catraca: ${text}\n`)
}

export function fail(text) {
  say(text)
  process.exit(1)
}

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return
  fail(`Node ${process.versions.node} is too old; 20.19 or newer is needed`)
}

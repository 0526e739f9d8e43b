import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { until } from './helpers.ts'

const command = fileURLToPath(new URL('../bin/catraca.js', import.meta.url))

export interface Run {
  readonly child: ChildProcess
  /** All that was printed so far. */
  readonly out: () => string
  readonly err: () => string
  readonly exit: Promise<number | null>
}

/** Runs the built command; ends it with the test. */
export function run(...args: string[]): Run {
  const child = spawn(process.execPath, [command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const exit = once(child, 'close').then(([code]) => code as number | null)
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, out: () => out, err: () => err, exit }
}

/** Runs a gateway on a free port and gives its address. */
export async function up(...args: string[]): Promise<Run & { url: string }> {
  const gateway = run('up', '--port', '0', '--host', '127.0.0.1', ...args)
  await until(() => /listens on \S+\n/.test(gateway.out()) || gateway.child.exitCode !== null)
  return { ...gateway, url: /listens on (\S+)/.exec(gateway.out())?.[1] ?? '' }
}

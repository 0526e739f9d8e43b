import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { randomPort } from './fault-proxy.ts'
import { findRedisServer, type RedisServer } from './redis-server.ts'

const startMs = 10_000
const replyMs = 5_000

export interface RedisProcessOptions {
  /** Put after the arguments that every process gets: loopback, port, folder, log, no persistence. */
  readonly args?: readonly string[]
  /** Default: one that is free. */
  readonly port?: number
  /** The working folder, which stays. Default: a new one that goes with the process. */
  readonly dir?: string
  /** The text of a configuration file. Redis may write it anew; a restart reads what it wrote. */
  readonly config?: string
}

/**
 * A redis-server on 127.0.0.1 that keeps nothing on disk. It ends when this process does, however that dies, and its
 * folder goes with it. It keeps this process running until {@link stop}.
 */
export class RedisProcess {
  readonly port: number
  private readonly server: RedisServer
  private readonly args: readonly string[]
  private readonly dir: string
  private readonly watcher: ChildProcess
  private child: ChildProcess | undefined

  private constructor(server: RedisServer, options: RedisProcessOptions) {
    this.server = server
    this.port = options.port ?? randomPort()
    this.dir = options.dir ?? mkdtempSync(join(tmpdir(), 'catraca-redis-'))
    this.watcher = watch(options.dir === undefined ? this.dir : '')
    const file = join(this.dir, 'redis.conf')
    if (options.config !== undefined) writeFileSync(file, options.config)
    const usual = ['--bind', '127.0.0.1', '--port', String(this.port), '--dir', this.dir, '--logfile', 'redis.log']
    const nothingKept = ['--save', '', '--appendonly', 'no']
    this.args = [...(options.config === undefined ? [] : [file]), ...usual, ...nothingKept, ...(options.args ?? [])]
  }

  /** Resolves when it answers. Rejects with the end of its log when it does not within 10 s. */
  static async start(options: RedisProcessOptions = {}): Promise<RedisProcess> {
    const server = await findRedisServer()
    for (let attempt = 1; ; attempt++) {
      const redis = new RedisProcess(server, options)
      try {
        await redis.launch()
        return redis
      } catch (error) {
        await redis.stop()
        if (!(error instanceof PortTaken) || options.port !== undefined || attempt === 20) throw error
      }
    }
  }

  /** Undefined while it does not run. */
  get pid(): number | undefined {
    return this.child?.pid
  }

  /** `redis://127.0.0.1:<port>`. */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** SIGKILL; resolves when it has ended. The port stays its own for {@link restart}. */
  async kill(): Promise<void> {
    const { child } = this
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  /** Starts it with the same port and arguments, after a kill if it runs. What it had in memory is gone. */
  async restart(): Promise<void> {
    await this.kill()
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.launch()
      } catch (error) {
        if (!(error instanceof PortTaken) || attempt === 10) throw error
        await sleep(100)
      }
    }
  }

  /** SIGSTOP: connections stay open and are taken, nothing is answered until {@link resume}. */
  pause(): void {
    this.child?.kill('SIGSTOP')
  }

  /** SIGCONT: answers what came in the meantime too. */
  resume(): void {
    this.child?.kill('SIGCONT')
  }

  /** Ends it for good, paused or not, and removes its folder. May be called again. */
  async stop(): Promise<void> {
    await this.kill()
    if (hasEnded(this.watcher)) return
    const ended = once(this.watcher, 'exit')
    this.watcher.stdin?.end()
    await ended
  }

  /**
   * One command over a connection of its own, made for the call. Rejects with what Redis answers, when nothing listens
   * and after 5 s without a reply.
   */
  async command(name: string, ...args: readonly string[]): Promise<unknown> {
    const redis = new Redis({
      host: '127.0.0.1',
      port: this.port,
      protocol: 2,
      lazyConnect: true,
      retryStrategy: null,
      enableReadyCheck: false,
      disableClientInfo: true,
      commandTimeout: replyMs,
    })
    redis.on('error', () => {})
    try {
      await redis.connect()
      return await redis.call(name, ...args)
    } finally {
      redis.disconnect()
    }
  }

  private async launch(): Promise<void> {
    if (hasEnded(this.watcher)) throw new Error('this redis-server was stopped for good')
    const { path, env } = this.server
    // It waits for a line, so that it never runs unwatched: without this process there is no line, and it ends.
    const child = spawn('/bin/sh', ['-c', 'read -r go && exec "$0" "$@"', path, ...this.args], {
      cwd: this.dir,
      // A group of its own: Ctrl-C is for this process.
      detached: true,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    this.child = child
    child.once('exit', () => {
      this.child = undefined
      this.tellWatcher(0)
    })
    child.stdin.on('error', () => {})
    await once(child, 'spawn')
    this.tellWatcher(child.pid ?? 0)
    child.stdin.end('\n')
    await this.answers(child)
  }

  private async answers(child: ChildProcess): Promise<void> {
    // Another server may have the port: the number says which one answers.
    const mine = new RegExp(`^process_id:${child.pid}\\r?$`, 'm')
    const deadline = performance.now() + startMs
    for (;;) {
      const reply = await this.command('INFO', 'server').catch(() => '')
      if (mine.test(String(reply)) && (await this.command('PING')) === 'PONG') return
      const log = this.lastOfLog()
      if (hasEnded(child)) {
        if (/in use|Failed listening/i.test(log)) throw new PortTaken(`port ${this.port} is already in use`)
        throw new Error(`redis-server ended at its start:\n${log}`)
      }
      if (performance.now() > deadline) {
        await this.kill()
        throw new Error(`redis-server does not answer within ${startMs / 1_000} s of its start:\n${log}`)
      }
      await sleep(10)
    }
  }

  private lastOfLog(): string {
    try {
      return readFileSync(join(this.dir, 'redis.log'), 'utf8').trimEnd().split('\n').slice(-5).join('\n')
    } catch {
      return 'it wrote no log'
    }
  }

  private tellWatcher(pid: number): void {
    if (this.watcher.stdin?.writable) this.watcher.stdin.write(`${pid}\n`)
  }
}

class PortTaken extends Error {}

/**
 * A shell that reads ids of processes, 0 for none. When its input ends, by {@link RedisProcess.stop} or by the death of
 * this process, it kills the last one and removes `dir`.
 */
function watch(dir: string): ChildProcess {
  const script = `
    pid=0
    while read -r line; do pid=$line; done
    [ "$pid" = 0 ] || kill -KILL "$pid"
    [ -z "$1" ] || rm -rf "$1"`
  const watcher = spawn('/bin/sh', ['-c', script, 'catraca-redis-watcher', dir], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watcher.stdin.on('error', () => {})
  return watcher
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** Asks until `holds` gives true; a rejection counts as not yet. Rejects after `limitMs` (default 30 s), naming `what`. */
export async function waitFor(what: string, holds: () => Promise<boolean>, limitMs = 30_000): Promise<void> {
  const deadline = performance.now() + limitMs
  let last: unknown
  for (;;) {
    try {
      if (await holds()) return
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limitMs / 1_000} s`, { cause: last })
    await sleep(20)
  }
}

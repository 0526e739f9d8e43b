import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { RedisProcess } from '@catraca/gateway/redis-server'
import { createLimiter } from 'catraca'
import { redisStore } from 'catraca/redis'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as generatedScripts from '../../src/stores/redis/script.generated.ts'
import { connect, rulesOf } from './support.ts'

const scripts = Object.entries(generatedScripts)
let server: RedisProcess
let redis: Redis

beforeAll(async () => {
  server = await RedisProcess.start()
  redis = connect(server.port)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

test('the file of scripts is what the fragments build', async () => {
  const builder = new URL('../../../../scripts/redis-script.mjs', import.meta.url).href
  const { generated, generatedFile } = (await import(builder)) as { generated: () => string; generatedFile: string }
  // The formatter sets line ends and commas of its own.
  const plain = (text: string): string => text.replaceAll(/[\s,]/g, '')
  expect(plain(readFileSync(generatedFile, 'utf8'))).toBe(plain(generated()))
})

test.each(scripts)('%s is known to the server by the SHA-1 that calls use', async (_, { sha, text }) => {
  expect(createHash('sha1').update(text).digest('hex')).toBe(sha)
  expect(await redis.script('LOAD', text)).toBe(sha)
})

/** Commands of a script with the literal words behind them, which are options. */
function commandsOf(text: string): [command: string, options: string[]][] {
  const calls = [...text.matchAll(/(?:call\(|\{ )'([A-Z]+)'((?:(?!call\()[^\n])*)/g)]
  return calls.map(([, command = '', rest = '']) => [
    command,
    [...rest.matchAll(/'([A-Z]{2,})'/g)].map(([, word = '']) => word),
  ])
}

type Doc = Record<string, unknown>

function fields(list: unknown): Doc {
  const flat = list as unknown[]
  const pairs = flat.flatMap((name, index) => (index % 2 === 0 ? [[String(name), flat[index + 1]]] : []))
  return Object.fromEntries(pairs) as Doc
}

/** Tokens of a command's arguments with the version that brought them. */
function tokensOf(list: unknown): Map<string, string> {
  const found = new Map<string, string>()
  for (const one of (list ?? []) as unknown[]) {
    const argument = fields(one)
    if (typeof argument['token'] === 'string')
      found.set(argument['token'], (argument['since'] as string | undefined) ?? '')
    for (const [token, since] of tokensOf(argument['arguments'])) found.set(token, since)
  }
  return found
}

function isIn62(since: string): boolean {
  const [major = 0, minor = 0] = since.split('.').map(Number)
  return since === '' || major < 6 || (major === 6 && minor <= 2)
}

test('the scripts use commands and options of Redis 6.2 at most', async () => {
  const used = scripts.flatMap(([, { text }]) => commandsOf(text))
  const names = [...new Set(used.map(([command]) => command))]
  expect(names).toEqual(expect.arrayContaining(['GET', 'MGET', 'SETRANGE', 'PEXPIRE', 'TIME', 'ZADD']))
  const docs = fields(await redis.call('COMMAND', 'DOCS', ...names))
  for (const [command, options] of used) {
    const doc = fields(docs[command.toLowerCase()])
    expect({ command, in62: isIn62(String(doc['since'])) }).toEqual({ command, in62: true })
    const tokens = tokensOf(doc['arguments'])
    for (const option of options) {
      expect({ command, option, known: tokens.has(option) }).toEqual({ command, option, known: true })
      expect({ command, option, in62: isIn62(tokens.get(option) ?? '') }).toEqual({ command, option, in62: true })
    }
  }
})

describe('what the server sees of every verb on every rule', () => {
  test('scripts touch the keys they were given and no others, and ask the time first', async () => {
    const monitor = await redis.monitor()
    const seen: string[][] = []
    monitor.on('monitor', (_time: string, args: string[], source: string) => seen.push([source, ...args]))
    const store = redisStore({ client: redis, timeoutMs: 5_000 })
    const rules = rulesOf(3)
    const keys = Object.fromEntries(Object.keys(rules).map((name) => [name, 'k']))
    const limiter = createLimiter(rules, { name: 'seen', store, onStoreFailure: 'closed' })
    for (let turn = 0; turn < 5; turn++) await limiter.take(keys)
    const decision = await limiter.take({ ...keys, permits: 'other' })
    expect([decision.degraded, decision.allowed]).toEqual([false, false])
    await limiter.peek(keys)
    await limiter.block(keys, '1m')
    await limiter.unblock(keys)
    await limiter.reset(keys)
    const taken = await limiter.take(keys)
    await limiter.renew(taken)
    await limiter.refund(taken)
    await limiter.release(taken)
    const changed = createLimiter(rulesOf(4), { name: 'seen2', store, onRuleChange: 'proportional' })
    await changed.take(keys)
    await redis.set('end', '1')
    while (!seen.some(([, command]) => command === 'set')) await new Promise(setImmediate)
    store.close()
    monitor.disconnect()

    let declared: string[] = []
    let first = false
    let inner = 0
    for (const [source, command = '', ...args] of seen) {
      if (/^eval/i.test(command)) {
        declared = args.slice(2, 2 + Number(args[1]))
        first = true
      } else if (source === 'lua') {
        inner++
        const name = command.toUpperCase()
        if (first) expect(name).toBe('TIME')
        first = false
        if (name === 'TIME' || name === 'INFO') continue
        const touched = name === 'MGET' ? args : args.slice(0, 1)
        for (const key of touched) expect(declared).toContain(key)
      }
    }
    expect(inner).toBeGreaterThan(100)
  })
})

import type { Decision, Rule } from 'catraca'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'
import type { Source } from '../../src/core/decision.ts'
import type { Call } from '../../src/stores/redis/calls.ts'
import { faultOf } from '../../src/stores/redis/fault.ts'
import { RedisLedger } from '../../src/stores/redis/redis-ledger.ts'
import { amend, batch, decide, reserve, upTo } from '../../src/stores/redis/script.generated.ts'

/** The scripts as they are, but for the time: the last argument in place of the server's clock. */
const clock = "local clock = call('TIME')\nlocal us = clock[1] * 1000000 + clock[2]"
const life = "keep = redis.call('PTTL', key)"
export const timedScripts = new Map(
  [decide, batch, amend, reserve, upTo].map(({ sha, text }) => [
    sha,
    text
      .replace(clock, 'local us = ARGV[#ARGV] + 0')
      .replaceAll(
        life,
        "keep = redis.call('HGET', 'ends', key)\nkeep = keep and keep - us / 1000 or redis.call('PTTL', key)",
      ),
  ]),
)

/**
 * Lives of keys by the clock of the test: after each question the life that a key was given is noted and taken away, and
 * before each the keys are forgotten whose life is over.
 */
const note = `for index = 1, #KEYS do
  local left = redis.call('PTTL', KEYS[index])
  if left == -1 then return redis.error_reply('a key without an end: ' .. KEYS[index]) end
  if left >= 0 and left < 1e14 then
    redis.call('HSET', 'ends', KEYS[index], string.format('%.0f', ARGV[1] / 1000 + left))
    redis.call('PEXPIRE', KEYS[index], '1000000000000000')
  end
end`
const forget = `for index = 1, #KEYS do
  local ends = redis.call('HGET', 'ends', KEYS[index])
  if ends and ends + 0 <= ARGV[1] / 1000 then redis.call('DEL', KEYS[index]) end
end`

export interface Named {
  readonly name: string
  readonly rule: Rule
  readonly onRuleChange?: Source['onRuleChange']
}

/** The Redis store on a real server, under a clock of the test. Everything asked is sent at once, in order. */
export class Simulated {
  readonly ledger: RedisLedger
  readonly rebasedMs: number[] = []
  nowUs = 0
  /** False where the clock is set: a server that was ahead forgets keys that the rules would still know. */
  expires = true
  private readonly redis: Redis
  private readonly shas = new Map<string, string>()

  private constructor(redis: Redis, shas: Map<string, string>, name: string, policies: readonly Named[]) {
    this.redis = redis
    this.shas = shas
    const sources = policies.map((policy) => ({ ...policy, issuer: { release: () => {} } }) as Source)
    const store = {
      calls: { send: (call: Call) => this.send(call) },
      prefix: 'simulated',
      cluster: false,
      rebased: (_: string, stepMs: number) => this.rebasedMs.push(stepMs),
      charged: () => {},
    }
    this.ledger = new RedisLedger(store as never, name, sources, () => {})
  }

  static async load(redis: Redis): Promise<(name: string, policies: readonly Named[]) => Simulated> {
    const shas = new Map<string, string>()
    for (const [sha, text] of timedScripts) shas.set(sha, (await redis.script('LOAD', text)) as string)
    return (name, policies) => new Simulated(redis, shas, name, policies)
  }

  /** Sets the clock, that of the process too. */
  at(us: number): void {
    this.nowUs = us
    vi.spyOn(Date, 'now').mockReturnValue(us / 1_000)
  }

  take(member: number, key: string, cost: number, charge = true): Promise<Decision> {
    return this.ledger.apply([member], [key], undefined, [cost], charge)
  }

  private send(call: Call): void {
    const sha = this.shas.get(call.script.sha) as string
    const { length } = call.keys
    const now = `${this.nowUs}`
    if (this.expires) void this.redis.eval(forget, length, ...call.keys, now)
    this.redis.evalsha(sha, length, ...call.keys, ...call.args, now).then(
      (answer) => call.answer(answer),
      (error: unknown) => call.fail(faultOf(error)),
    )
    if (this.expires) void this.redis.eval(note, length, ...call.keys, now)
  }
}

import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { allowedWords, documentShape, leaseBounds, type ObjectShape, type Shape } from 'catraca/policy'
import { type RuleKind, registry } from '../../packages/catraca/src/algorithms/registry.ts'
import { durationText } from '../../packages/catraca/src/core/duration.ts'
import type { Parameter } from '../../packages/catraca/src/core/parameters.ts'
import { gatewayKeys, gatewayShape } from '../../packages/config/src/gateway-shape.ts'

/** The generated parts of the pages by name: each comes from a run of the library, or from its data. */
export const blocks: Readonly<Record<string, () => string>> = {
  'two questions': twoQuestions,
  'three windows': threeWindows,
  'two knobs': twoKnobs,
  'rate, quota, concurrency': rateQuotaConcurrency,
  'lease bounds': leaseBoundsTable,
  'policy keys': () => keys(documentShape),
  'gateway keys': () => keys({ ...gatewayShape, keys: gatewayKeys }),
  ...Object.fromEntries(Object.keys(registry).map((name) => [`options ${name}`, () => options(name)])),
}

interface Passed {
  at: number
  startsAt: number
}

/** Requests at the given milliseconds, one unit each, by one caller; those that passed and when they may start. */
function pass(rule: Rule, times: readonly number[]): Passed[] {
  const limiter = createLimiter(rule)
  const passed: Passed[] = []
  for (const at of times) {
    const decision = limiter.take('caller', { now: at })
    if (decision.allowed) passed.push({ at, startsAt: at + decision.delayMs })
  }
  return passed
}

/** The most starts in any half-open span. */
function mostIn(passed: readonly Passed[], spanMs: number): number {
  const starts = passed.map(({ startsAt }) => startsAt).toSorted((a, b) => a - b)
  let most = 0
  for (let first = 0, last = 0; first < starts.length; first++) {
    while (last < starts.length && (starts[last] as number) < (starts[first] as number) + spanMs) last++
    most = Math.max(most, last - first)
  }
  return most
}

function every(ms: number, count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, index) => from + index * ms)
}

function times(count: number, at: number): number[] {
  return Array.from({ length: count }, () => at)
}

function tenPerSecond(): readonly (readonly [string, Rule])[] {
  const rate = { limit: 10, window: '1s' } as const
  return [
    ['`fixedWindow`', fixedWindow(rate)],
    ['`slidingLog`', slidingLog(rate)],
    ['`slidingCounter`', slidingCounter(rate)],
    ['`tokenBucket`', tokenBucket(rate)],
    ['`gcra`', gcra(rate)],
    ['`leakyMeter`', leakyMeter(rate)],
    ['`leakyQueue`', leakyQueue({ ...rate, capacity: 10 })],
  ]
}

/** Six instances over blocks, for rules of 1000 per second whose leases end with the window and those whose do not. */
function leaseBoundsTable(): string {
  const instances = 6
  const rate = { limit: 1_000, window: '1s' } as const
  const kept = [tokenBucket(rate), gcra(rate), leakyMeter(rate), slidingLog(rate)]
  const ending = [fixedWindow(rate), slidingCounter(rate)]
  const only = (rules: readonly Rule[], block: number): string => {
    const found = new Set(rules.map((rule) => leaseBounds(rule, { block }, instances).over))
    if (found.size > 1) throw new Error('rules of one column have several bounds')
    return String([...found][0])
  }
  const rows = [1, 2, 10, 20, 50, 100].map((block) => {
    const { held, under } = leaseBounds(kept[0] as Rule, { block }, instances)
    return [block, held, only(ending, block), only(kept, block), under].map(String)
  })
  const names = (rules: readonly Rule[]): string => rules.map(({ algorithm }) => `\`${algorithm}\``).join(', ')
  return table(['`block`', 'held by one', `over: ${names(ending)}`, `over: ${names(kept)}`, 'under'], rows)
}

function twoQuestions(): string {
  const rows = tenPerSecond().map(([name, rule]) => {
    const long = pass(rule, every(20, 5_000)).filter(({ startsAt }) => startsAt <= 100_000).length
    const burst = pass(rule, every(10, 20))
    const spread = burst.some(({ at, startsAt }) => startsAt > at)
    const starts = spread ? `spread to ${burst.at(-1)?.startsAt} ms` : 'at once'
    return [name, `${long}`, `${burst.length} of 20, ${starts}`]
  })
  return table(
    ['10 per second', 'how much in the long run: 50/s for 100 s', 'how much at once: 20 within 200 ms'],
    rows,
  )
}

function threeWindows(): string {
  const windows = ([limit, window]: [number, `${number}s`]): readonly Rule[] => [
    fixedWindow({ limit, window }),
    slidingCounter({ limit, window }),
    slidingLog({ limit, window }),
  ]
  const minute = (list: readonly number[]): string[] =>
    windows([100, '60s']).map((rule) => `${mostIn(pass(rule, list), 60_000)}`)
  const second = (list: readonly number[]): string[] =>
    windows([10, '1s']).map((rule) => `${mostIn(pass(rule, list), 1_000)}`)
  const patternA = Array.from({ length: 10 }, (_, group) => times(8, 200 + group * 100)).flat()
  const worst = [...times(100, 59_999), ...every(100, 600, 60_000)]
  return table(
    ['', '`fixedWindow`', '`slidingCounter`', '`slidingLog`'],
    [
      ['100 per minute: 100 at 59.6 s and 100 at 60.2 s', ...minute([...times(100, 59_600), ...times(100, 60_200)])],
      ['100 per minute: 100 at 59.999 s, then 10 per second', ...minute(worst)],
      ['10 per second: 8 every 100 ms from 0.2 s to 1.1 s', ...second(patternA)],
      ['state of a key, numbers', '2', '3', '3 per admitted request'],
      ['passes at most, in any window', '2 × limit', '2 × limit, over a whole window', 'limit'],
    ],
  )
}

function twoKnobs(): string {
  const rows = (
    [
      [60, 1],
      [60, 10],
      [600, 10],
      [600, 90],
      [600, 600],
    ] as const
  ).map(([limit, burst]) => {
    const rule = tokenBucket({ limit, window: '1m', burst })
    const passed = pass(rule, every(10, 12_000))
    const later = passed.filter(({ at }) => at >= 60_000).length
    return [
      `${limit} per minute`,
      `${burst}`,
      `${pass(rule, times(1_000, 0)).length}`,
      `${mostIn(passed, 60_000)}`,
      `${later}`,
    ]
  })
  return table(
    ['rate r', 'burst B', 'at once, after rest', 'most in any minute, 100/s asked', 'in the second minute'],
    rows,
  )
}

function rateQuotaConcurrency(): string {
  const day = createLimiter(quota({ limit: 500_000, period: 'day' }))
  let hour = 0
  while (day.take('caller', { cost: 10, now: hour * 1_000 }).allowed) hour++
  const served = [250, 500].map((serviceMs) => {
    const limiter = createLimiter(concurrency({ limit: 30 }))
    const ends: { at: number; release: () => void }[] = []
    let done = 0
    for (let now = 0; now < 20_000; now++) {
      while (ends[0] !== undefined && ends[0].at <= now) ends.shift()?.release()
      const decision = limiter.take('caller', { now })
      if (!decision.allowed) continue
      if (now >= 10_000) done++
      ends.push({ at: now + serviceMs, release: () => decision.release() })
    }
    return done / 10
  })
  const rate =
    pass(tokenBucket({ limit: 120, window: '1s' }), every(1, 20_000)).filter(({ at }) => at >= 10_000).length / 10
  return table(
    ['', 'rate: 120 per second', 'quota: 500,000 per day', 'concurrency: 30 at once'],
    [
      ['asks', 'how fast', 'how much per calendar period', 'how many at the same time'],
      ['1,000 per second asked, 0.25 s each', `${rate} per second`, '', `${served[0]} per second`],
      ['the same, each now 0.5 s', `${rate} per second, twice as many in flight`, '', `${served[1]} per second`],
      ['10 per second, all day', 'passes', `gone after ${hour} s (${(hour / 3_600).toFixed(1)} h)`, 'passes'],
      ['a refusal says', '`limited`', '`quota`', '`concurrency`'],
      ['comes back', 'evenly', 'at the period boundary', 'on release, or after `permitTtl`'],
    ],
  )
}

function options(name: string): string {
  const { parameters } = registry[name] as RuleKind
  const rows = Object.entries(parameters).map(([option, parameter]) => {
    const allowed =
      parameter.kind === 'integer'
        ? `whole, ${parameter.min} to ${parameter.max.toLocaleString('en')} ${parameter.unit}`
        : parameter.kind === 'choice'
          ? parameter.of.map((choice) => `\`${choice}\``).join(', ')
          : parameter.kind === 'text'
            ? parameter.like
            : 'a duration'
    const preset =
      parameter.default === undefined ? 'required' : parameter.default === '' ? '–' : `\`${show(parameter)}\``
    return [`\`${option}\``, allowed, preset, parameter.words]
  })
  return table(['option', 'allowed', 'default', 'means'], rows)
}

function show({ kind, default: value }: Parameter): string {
  return kind === 'duration' && typeof value === 'number' ? durationText(value * 1_000) : `${value}`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  // Without the backslash a bar would end its cell, also in code.
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** Every key of a document with what may stand there, from the data that the checker reads. */
function keys(shape: ObjectShape): string {
  return table(['key', 'may be', 'default', 'means'], rowsOf(shape, ''))
}

function rowsOf(shape: Shape, path: string): string[][] {
  switch (shape.kind) {
    case 'object':
      return Object.entries(shape.keys).flatMap(([name, one]) => {
        const at = path === '' ? name : `${path}.${name}`
        const given = 'default' in one && one.default !== undefined && one.default !== '' ? `\`${one.default}\`` : ''
        const needed = shape.required.includes(name) ? 'required' : given
        return [[`\`${at}\``, mayBe(one), needed, one.words], ...rowsOf(one, at)]
      })
    case 'map':
      return rowsOf(shape.of, `${path}.<${shape.name}>`)
    case 'list':
      return rowsOf(shape.of, `${path}[]`)
    case 'either':
      return shape.of.flatMap((one) => (one.kind === 'object' ? rowsOf(one, path) : []))
    default:
      return []
  }
}

/** What may stand at a key, in a few words. */
function mayBe(shape: Shape): string {
  switch (shape.kind) {
    case 'object':
      return 'object'
    case 'map':
      return `object by ${shape.name}`
    case 'list':
      return `list of ${mayBe(shape.of)}`
    case 'variant':
      return `object with \`${shape.key}\`: ${Object.keys(shape.of).join(', ')}`
    case 'either':
      return shape.of.map(mayBe).join(', or ')
    default:
      return allowedWords(shape)
  }
}

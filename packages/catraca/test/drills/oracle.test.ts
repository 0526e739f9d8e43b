import { expect, test } from 'vitest'
import type { Line } from './fleet.ts'
import { heldBy } from './held.ts'
import { type Admission, beyond, excess, judge } from './oracle.ts'
import { instances, type Law, leasePlan, shareOf } from './plan.ts'
import { starved } from './starved.ts'

const second = 1_000_000
const begin = 1_800_000_000 * second
const laws: Record<string, Law> = {
  bucket: { kind: 'bucket', limit: 60, windowMs: 1_000, burst: 30 },
  log: { kind: 'log', limit: 40, windowMs: 1_000 },
  fixed: { kind: 'fixed', limit: 50, windowMs: 1_000 },
  first: { kind: 'first', limit: 50, windowMs: 1_000 },
  counter: { kind: 'counter', limit: 50, windowMs: 1_000 },
  permits: { kind: 'permits', limit: 6, windowMs: 2_000 },
}

function admission(us: number, more: Partial<Admission> = {}): Admission {
  return { us: begin + us, cost: 1, process: 0, degraded: false, ...more }
}

function times(count: number, make: (index: number) => Admission): Admission[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** As much as a law admits over some seconds. */
const exact: Record<string, Admission[]> = {
  // The burst, then a unit whenever one has come back.
  bucket: [
    ...times(30, () => admission(0)),
    ...times(180, (index) => admission(Math.ceil(((index + 1) * second) / 60))),
  ],
  // The limit at once, and again at the instant at which the first are a window old.
  log: [0, 1, 2].flatMap((window) => times(40, () => admission(window * second))),
  // The limit at the end of a window and at the beginning of the next.
  fixed: [...times(50, () => admission(second - 1)), ...times(50, () => admission(second))],
  // A window that begins with a request, and another one as soon as it is over.
  first: [300_000, 300_000 + second].flatMap((start) =>
    times(50, (index) => admission(start + index * 1_000, { windowUs: begin + start })),
  ),
  // The limit in one window, then one unit each time that the window before weighs a unit less.
  counter: [
    ...times(50, (index) => admission(index * 20_000)),
    ...times(50, (index) => admission(second + index * 20_000 + 1)),
  ],
  permits: times(60, (index) => {
    const us = Math.floor(index / 6) * 60_000
    return admission(us, { releasedUs: begin + us + 60_000 })
  }),
}

for (const [name, log] of Object.entries(exact)) {
  const law = laws[name] as Law

  test(`${name}: what the law admits is not too much`, () => {
    expect(excess(law, log)).toBeCloseTo(0, 9)
    expect(beyond(judge(name, 'key', law, log, 0))).toEqual([])
  })

  test(`${name}: one decision too many is found, wherever it is`, () => {
    for (const index of [0, 1, Math.floor(log.length / 2), log.length - 1]) {
      const one = log[index] as Admission
      // Of permits, one that is held while the others of its time are.
      expect(excess(law, [...log, one])).toBeGreaterThan(0.9)
      const [found] = beyond(judge(name, 'key', law, [...log, one], 0))
      expect(found).toMatchObject({ side: 'store', policy: name, key: 'key', bound: 0 })
      expect(found?.over).toBeCloseTo(1, 1)
    }
  })

  test(`${name}: a store that forgot a key hands out one capacity more, not one and a unit`, () => {
    const again = times(law.burst ?? law.limit, () => admission(second, { releasedUs: begin + 2 * second }))
    const before = times(law.burst ?? law.limit, () => admission(second, { releasedUs: begin + 2 * second }))
    const all = [...before, ...again]
    expect(beyond(judge(name, 'key', law, all, 0))).not.toEqual([])
    expect(beyond(judge(name, 'key', law, all, 1))).toEqual([])
    expect(beyond(judge(name, 'key', law, [...all, admission(second)], 1))).not.toEqual([])
  })

  test(`${name}: a process that admits more than its share is found, one after many outages too`, () => {
    const share = shareOf(law)
    const full = times(share.burst ?? share.limit, () => admission(0, { degraded: true, process: 1 }))
    expect(beyond(judge(name, 'key', law, full, 0))).toEqual([])
    const more = [...full, admission(1, { degraded: true, process: 1 })]
    expect(beyond(judge(name, 'key', law, more, 0)).map(({ side }) => side)).toContain('share')
    // The same unit is within the share of another process.
    expect(beyond(judge(name, 'key', law, [...full, admission(1, { degraded: true, process: 2 })], 0))).toEqual([])
  })
}

test('a share is at least one unit: as many as there are instances where the limit is less', () => {
  const law: Law = { kind: 'log', limit: 2, windowMs: 1_000 }
  const local = times(instances, (process) => admission(0, { degraded: true, process }))
  const store = times(2, () => admission(0))
  expect(judge('scarce', 'key', law, [...store, ...local], 0)).toContainEqual({
    side: 'together',
    policy: 'scarce',
    key: 'key',
    over: instances,
    bound: instances,
  })
})

test('permits that ended by themselves or are being given back are not held', () => {
  const law = laws['permits'] as Law
  const held = times(6, () => admission(0))
  expect(excess(law, [...held, admission(2 * second - 1)])).toBe(1)
  expect(excess(law, [...held, admission(2 * second)])).toBe(0)
  const given = times(6, () => admission(0, { releasedUs: begin + 100_000 }))
  expect(excess(law, [...given, admission(90_000)])).toBe(1)
  expect(excess(law, [...given, admission(100_000)])).toBe(0)
})

test('windows of a clock that is put back are counted anew, in real time they are not', () => {
  const law = laws['fixed'] as Law
  // A step of minutes back within a real second: each setting of the clock has windows of its own.
  const before = times(50, () => admission(1_000))
  const after = times(50, () => admission(2_000, { offsetUs: -120 * second }))
  const third = times(1, () => admission(3_000, { offsetUs: -240 * second }))
  expect(excess(law, [...before, ...after])).toBe(0)
  expect(beyond(judge('fixed', 'key', law, [...before, ...after], 0))).toEqual([])
  expect(beyond(judge('fixed', 'key', law, [...before, ...after, ...third], 0))).toMatchObject([{ side: 'together' }])
})

test('an admission outside the window in which it is counted is found', () => {
  const law = laws['first'] as Law
  expect(excess(law, [admission(second, { windowUs: begin })])).toBe(Infinity)
  expect(excess(law, [admission(0, { windowUs: begin + 1 })])).toBe(Infinity)
})

test('windows of a key that overlap count together', () => {
  const law = laws['first'] as Law
  const one = times(50, () => admission(0, { windowUs: begin }))
  const other = (start: number) => times(50, () => admission(start, { windowUs: begin + start }))
  expect(excess(law, [...one, ...other(second)])).toBe(0)
  expect(excess(law, [...one, ...other(second - 1)])).toBe(50)
})

test('units that are held when a span begins may be used in it, no more', () => {
  const law = laws['log'] as Law
  const all = times(50, () => admission(0))
  expect(beyond(judge('log', 'key', law, all, 0, 10))).toEqual([])
  expect(beyond(judge('log', 'key', law, all, 0, 9))).toMatchObject([{ side: 'store', over: 10, bound: 9 }, {}])
})

test('what instances hold: nothing without a lease or where it ends with a window, else N × H', () => {
  const held = (law: Law, lease?: { block: number; ttl: number }) =>
    heldBy({ name: 'l', mode: 'local', policies: [], ...(lease !== undefined && { lease }) }, law)
  const lease = { block: 8, ttl: 2_000 }
  expect([laws['log'], laws['bucket']].map((law) => held(law as Law, lease))).toEqual([33, 33])
  expect(['fixed', 'first', 'counter'].map((kind) => held(laws[kind] as Law, lease))).toEqual([0, 0, 0])
  expect(held(laws['log'] as Law)).toBe(0)
})

test('a window of which too little was admitted while more was asked for is found', () => {
  const policy = leasePlan.findIndex(({ name }) => name === 'shut')
  const line = (us: number, allowed: boolean): Line => ({
    process: 0,
    policy,
    key: 0,
    cost: 1,
    allowed,
    degraded: false,
    counts: true,
    storeClosed: false,
    us: begin + us,
    windowUs: begin,
    sentMs: 0,
    tookMs: 0,
    releasedMs: 0,
  })
  // 60 less three times 11.
  const lines = (admitted: number) => Array.from({ length: 120 }, (_, index) => line(index * 8_000, index < admitted))
  expect(starved(leasePlan, lines(27), begin, begin + second)).toEqual([])
  expect(starved(leasePlan, lines(26), begin, begin + second).length).toBe(1)
  expect(starved(leasePlan, lines(26).slice(0, 80), begin, begin + second)).toEqual([])
  expect(starved(leasePlan, lines(26), begin + 1, begin + second)).toEqual([])
})

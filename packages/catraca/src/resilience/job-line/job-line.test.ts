import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Entry, JobLine } from './job-line.ts'

test('first come, first served for each caller, and nobody waits behind a job that may not start yet', () => {
  const line = new JobLine<string>({ maxQueued: 10, maxPerCaller: 10, concurrency: 1 })
  for (const [job, caller] of [
    ['a1', 'a'],
    ['a2', 'a'],
    ['b1', 'b'],
  ] as const) {
    expect(line.add(job, caller)).toBe(true)
  }
  const first = line.next(0) as Entry<string>
  expect(first.job).toBe('a1')
  expect([line.next(0), line.wakeUs()]).toEqual([undefined, Infinity])
  line.defer(first, 100)
  // a2 is not asked before a1.
  const second = line.next(0) as Entry<string>
  expect(second.job).toBe('b1')
  line.defer(second, 50)
  expect(line.wakeUs()).toBe(50)
  expect(line.next(49)).toBeUndefined()
  expect((line.next(50) as Entry<string>).job).toBe('b1')
  line.start(second)
  line.end()
  expect([line.wakeUs(), (line.next(100) as Entry<string>).job]).toEqual([100, 'a1'])
})

test('there is no room beyond the bounds, and a caller has room again once its job starts', () => {
  const line = new JobLine<number>({ maxQueued: 3, maxPerCaller: 2, concurrency: 2 })
  expect([line.add(1, 'a'), line.add(2, 'a'), line.add(3, 'a'), line.add(4, 'b'), line.add(5, 'c')]).toEqual([
    true,
    true,
    false,
    true,
    false,
  ])
  line.start(line.next(0) as Entry<number>)
  expect([line.add(6, 'a'), line.add(7, 'a')]).toEqual([true, false])
  expect([line.clear(), line.queued, line.add(8, 'a')]).toEqual([[2, 4, 6], 0, true])
})

test('whatever is deferred, each caller’s jobs start in their order, each once, never more at a time than allowed', () => {
  const step = fc.record({ caller: fc.constantFrom('a', 'b', 'c'), defer: fc.nat(3), end: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 3 }), (steps, concurrency) => {
      const line = new JobLine<string>({ maxQueued: 20, maxPerCaller: 9, concurrency })
      const started: string[] = []
      let running = 0
      let number = 0
      for (const [nowUs, { caller, defer, end }] of steps.entries()) {
        line.add(`${caller}${String(number++).padStart(3, '0')}`, caller)
        if (end && running > 0) {
          running--
          line.end()
        }
        const entry = line.next(nowUs)
        if (entry === undefined) continue
        if (defer > 0) line.defer(entry, nowUs + defer)
        else {
          line.start(entry)
          started.push(entry.job)
          running++
        }
        expect(running).toBeLessThanOrEqual(concurrency)
      }
      expect(new Set(started).size).toBe(started.length)
      for (const caller of ['a', 'b', 'c']) {
        const own = started.filter((job) => job.startsWith(caller))
        expect(own).toEqual(own.toSorted())
      }
    }),
  )
})

test('while the first of a caller is being asked its next is not, with room for both; once it runs, the next is', () => {
  const line = new JobLine<string>({ maxQueued: 10, maxPerCaller: 10, concurrency: 3 })
  for (const [job, caller] of ['a1:a', 'a2:a', 'b1:b'].map((text) => text.split(':') as [string, string])) {
    line.add(job, caller)
  }
  const first = line.next(0)
  expect([first?.job, line.next(0)?.job, line.next(0)]).toEqual(['a1', 'b1', undefined])
  expect(line.wakeUs()).toBe(Infinity)
  line.defer(first as NonNullable<typeof first>, 5)
  expect([line.wakeUs(), line.next(4), line.next(5)?.job, line.next(5)]).toEqual([5, undefined, 'a1', undefined])
  line.start(first as NonNullable<typeof first>)
  expect(line.next(5)?.job).toBe('a2')
})

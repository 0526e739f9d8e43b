import { type AnswerCache, type Jobs, memoryCache, memoryJobs, type Work } from 'catraca/http'
import { cacheSuite, type DeclareTest, jobsSuite } from 'catraca/testing'
import { describe, expect, test } from 'vitest'

type Run = (work: Work<string>) => unknown

describe('memoryCache', () => {
  cacheSuite(test, async () => ({ cache: memoryCache(), close: () => {} }))
})

describe('memoryJobs', () => {
  jobsSuite(test, async (run) => {
    const jobs = memoryJobs<string>({ run, concurrency: 2, maxQueued: 40, maxPerCaller: 5 })
    return { jobs, room: 5, close: () => jobs.close() }
  })
})

/** Declares the tests of a suite, and gives those whose name holds some words. */
function declared(declare: (test: DeclareTest) => void, words: string): (() => Promise<void>)[] {
  const found: (() => Promise<void>)[] = []
  declare((name, run) => {
    if (name.includes(words)) found.push(run)
  })
  return found
}

/** What the tests of those words say of a defect. */
async function verdictsOn(declare: (test: DeclareTest) => void, words: string): Promise<string> {
  const runs = declared(declare, words)
  if (runs.length === 0) throw new Error(`no test is about ${words}`)
  for (const run of runs) {
    try {
      await run()
    } catch (error) {
      return (error as Error).message
    }
  }
  return 'nothing'
}

describe('a cache with a defect is found', () => {
  const kept = memoryCache
  const defects: [string, () => AnswerCache, RegExp][] = [
    ['no two keys are one', () => named(kept(), (key) => key.toLowerCase()), /copy under/],
    ['no two keys are one', () => named(kept(), (key) => key.slice(0, 100)), /copy under/],
    ['no two keys are one', () => named(kept(), (key) => key.normalize('NFC')), /copy under/],
    [
      'never kept',
      () => ({
        ...changing((answer) => answer),
        get: () => ({ status: 200, fields: [], body: new Uint8Array(0), madeAtMs: 0 }),
      }),
      /copy under/,
    ],
    ['how long a body may be', () => ({ ...changing((answer) => answer), maxBodyBytes: 0.5 }), /maxBodyBytes/],
  ]
  test.each(defects)(
    'by "%s"',
    async (words, make, expected) => {
      const found = await verdictsOn(
        (declare) => cacheSuite(declare, async () => ({ cache: make(), close: () => {} })),
        words,
      )
      expect(found).toMatch(expected)
    },
    30_000,
  )

  function named(cache: AnswerCache, nameOf: (key: string) => string): AnswerCache {
    return {
      maxBodyBytes: cache.maxBodyBytes,
      get: (key) => cache.get(nameOf(key)),
      set: (key, answer) => cache.set(nameOf(key), answer),
    }
  }

  function changing(
    change: (answer: Parameters<AnswerCache['set']>[1]) => Parameters<AnswerCache['set']>[1],
  ): AnswerCache {
    const cache = memoryCache()
    return {
      maxBodyBytes: cache.maxBodyBytes,
      get: (key) => cache.get(key),
      set: (key, answer) => cache.set(key, change(answer)),
    }
  }
})

describe('a runner with a defect is found', () => {
  const jobsOf = (run: Run) => memoryJobs<string>({ run, concurrency: 2, maxQueued: 40, maxPerCaller: 5 })
  let counter = 0
  const defects: [string, (run: Run) => Jobs<string>, RegExp][] = [
    [
      'do not follow from each other',
      (run) => changed(run, { submit: () => `job-${String(counter++).padStart(20, '0')}` }),
      /differ/,
    ],
    ['do not follow from each other', (run) => changed(run, { submit: () => String(counter++) }), /16 to 128/],
    ['is carried out once', (run) => jobsOf(async (work) => (await run(work), run(work))), /how often it ran/],
    ['end of its room', (run) => memoryJobs<string>({ run, maxQueued: 40, maxPerCaller: 40 }), /one too many/],
    ['others have their own', (run) => memoryJobs<string>({ run, maxQueued: 5, maxPerCaller: 5 }), /no room/],
    ['after the close', (run) => changed(run, { close: () => {} }), /after the close/],
    ['is not found', (run) => changed(run, { find: (id) => ({ id, state: 'queued', acceptedAt: '' }) }), /status of/],
  ]
  test.each(defects)(
    'by "%s"',
    async (words, make, expected) => {
      const suite = (declare: DeclareTest) =>
        jobsSuite(declare, async (run) => {
          const jobs = make(run)
          return { jobs, room: 5, close: () => jobs.close() }
        })
      expect(await verdictsOn(suite, words)).toMatch(expected)
    },
    30_000,
  )

  function changed(run: Run, change: Partial<Jobs<string>>, work: Partial<Work<string>> = {}): Jobs<string> {
    const jobs = jobsOf((one) => run(Object.getPrototypeOf(one) === Object.prototype ? (one as Wrapped).inner : one))
    return {
      path: jobs.path,
      submit: (one) => jobs.submit({ ...wrap(one), ...work }),
      find: (id) => jobs.find(id),
      close: () => jobs.close(),
      ...change,
    }
  }
})

interface Wrapped extends Work<string> {
  readonly inner: Work<string>
}

function wrap(inner: Work<string>): Wrapped {
  const { request, method, target, body, caller } = inner
  return { inner, request, method, target, body, caller, ready: () => inner.ready(), over: () => inner.over() }
}

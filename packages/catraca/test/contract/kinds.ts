import {
  concurrency,
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

/** Every rule with a given limit and nothing coming back within a second. */
export const kinds: Readonly<Record<string, (limit: number) => Rule>> = {
  fixedWindow: (limit) => fixedWindow({ limit, window: '1d' }),
  'fixedWindow first': (limit) => fixedWindow({ limit, window: '1d', anchor: 'first' }),
  slidingLog: (limit) => slidingLog({ limit, window: '1d' }),
  slidingCounter: (limit) => slidingCounter({ limit, window: '1d' }),
  'slidingCounter in parts': (limit) => slidingCounter({ limit, window: '1d', subWindows: 6 }),
  tokenBucket: (limit) => tokenBucket({ limit: 1, window: '1d', burst: limit }),
  gcra: (limit) => gcra({ limit: 1, window: '1d', burst: limit }),
  leakyMeter: (limit) => leakyMeter({ limit: 1, window: '1d', burst: limit }),
  leakyQueue: (limit) => leakyQueue({ limit: 1, window: '1d', capacity: limit }),
  quota: (limit) => quota({ limit, period: 'day' }),
  concurrency: (limit) => concurrency({ limit, permitTtl: '1d' }),
}
export const kindNames = Object.keys(kinds)
export const make = (kind: string, limit: number): Rule => (kinds[kind] as (limit: number) => Rule)(limit)

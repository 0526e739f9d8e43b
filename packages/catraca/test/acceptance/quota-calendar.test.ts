import { createLimiter, type QuotaOptions, quota } from 'catraca'
import { describe, expect, test } from 'vitest'

const microsecond = 0.001

/** Starts of consecutive periods as instants, written out; the last one only ends the period before it. */
const calendars: { name: string; options: Omit<QuotaOptions, 'limit'>; starts: string[] }[] = [
  {
    name: 'days of UTC',
    options: { period: 'day' },
    starts: ['2026-12-31T00:00Z', '2027-01-01T00:00Z', '2027-01-02T00:00Z'],
  },
  {
    name: 'weeks begin on Monday',
    options: { period: 'week' },
    starts: ['2026-12-28T00:00Z', '2027-01-04T00:00Z', '2027-01-11T00:00Z'],
  },
  {
    name: 'months of UTC over a leap February',
    options: { period: 'month' },
    starts: ['2028-01-01T00:00Z', '2028-02-01T00:00Z', '2028-03-01T00:00Z', '2028-04-01T00:00Z'],
  },
  {
    name: 'months from the 31st over February 2027',
    options: { period: 'month', anchor: '2027-01-31' },
    starts: ['2027-01-31T00:00Z', '2027-02-28T00:00Z', '2027-03-31T00:00Z', '2027-04-30T00:00Z', '2027-05-31T00:00Z'],
  },
  {
    name: 'months from the 31st over February 2028, a leap year',
    options: { period: 'month', anchor: '2027-01-31' },
    starts: ['2028-01-31T00:00Z', '2028-02-29T00:00Z', '2028-03-31T00:00Z', '2028-04-30T00:00Z'],
  },
  {
    name: 'years',
    options: { period: 'year' },
    starts: ['2027-01-01T00:00Z', '2028-01-01T00:00Z', '2029-01-01T00:00Z'],
  },
  {
    name: 'years from 29 February',
    options: { period: 'year', anchor: '2028-02-29' },
    starts: ['2028-02-29T00:00Z', '2029-02-28T00:00Z', '2030-02-28T00:00Z', '2031-02-28T00:00Z', '2032-02-29T00:00Z'],
  },
  {
    name: 'São Paulo, 4 November 2018 has no midnight and begins at local 01:00',
    options: { period: 'day', timeZone: 'America/Sao_Paulo' },
    starts: ['2018-11-03T03:00Z', '2018-11-04T03:00Z', '2018-11-05T02:00Z', '2018-11-06T02:00Z'],
  },
  {
    name: 'São Paulo, at midnight of 18 February 2018 the clock falls back into the 17th, which lasts 25 hours',
    options: { period: 'day', timeZone: 'America/Sao_Paulo' },
    starts: ['2018-02-16T02:00Z', '2018-02-17T02:00Z', '2018-02-18T03:00Z', '2018-02-19T03:00Z'],
  },
  {
    name: 'São Paulo, months over the change of November 2018',
    options: { period: 'month', timeZone: 'America/Sao_Paulo' },
    starts: ['2018-10-01T03:00Z', '2018-11-01T03:00Z', '2018-12-01T02:00Z'],
  },
  {
    name: 'Havana, on 7 November 2027 midnight happens twice and the first one begins the day',
    options: { period: 'day', timeZone: 'America/Havana' },
    starts: ['2027-11-06T04:00Z', '2027-11-07T04:00Z', '2027-11-08T05:00Z'],
  },
  {
    name: 'Lord Howe, 4 April 2027 lasts half an hour longer',
    options: { period: 'day', timeZone: 'Australia/Lord_Howe' },
    starts: ['2027-04-02T13:00Z', '2027-04-03T13:00Z', '2027-04-04T13:30Z', '2027-04-05T13:30Z'],
  },
  {
    name: 'Lord Howe, 3 October 2027 lasts half an hour less',
    options: { period: 'day', timeZone: 'Australia/Lord_Howe' },
    starts: ['2027-10-01T13:30Z', '2027-10-02T13:30Z', '2027-10-03T13:00Z', '2027-10-04T13:00Z'],
  },
  {
    name: 'Apia skipped 30 December 2011, which has no period',
    options: { period: 'day', timeZone: 'Pacific/Apia' },
    starts: ['2011-12-28T10:00Z', '2011-12-29T10:00Z', '2011-12-30T10:00Z', '2011-12-31T10:00Z'],
  },
  {
    name: 'New York, weeks over both changes of 2027',
    options: { period: 'week', timeZone: 'America/New_York' },
    starts: ['2027-03-08T05:00Z', '2027-03-15T04:00Z', '2027-03-22T04:00Z'],
  },
  {
    name: 'New York, days from 02:30, which 14 March 2027 skipped',
    options: { period: 'day', timeZone: 'America/New_York', anchor: '2027-01-01T02:30' },
    starts: ['2027-03-13T07:30Z', '2027-03-14T07:00Z', '2027-03-15T06:30Z'],
  },
  {
    name: 'New York, days from 01:30, which 7 November 2027 had twice',
    options: { period: 'day', timeZone: 'America/New_York', anchor: '2027-01-01T01:30' },
    starts: ['2027-11-06T05:30Z', '2027-11-07T05:30Z', '2027-11-08T06:30Z'],
  },
]

describe.each(calendars)('$name', ({ options, starts }) => {
  const instants = starts.map((text) => Date.parse(text))
  const periods = instants.slice(1).map((end, index) => ({ start: instants[index] as number, end }))

  test.each(periods)('acceptance 205: [$start, $end) is one period', ({ start, end }) => {
    const limiter = createLimiter(quota({ limit: 1, ...options }))
    expect(limiter.take('before', { now: start - microsecond }).allowed).toBe(true)
    expect(limiter.take('before', { now: start - microsecond }).retryAfterMs).toBe(microsecond)
    expect(limiter.take('before', { now: start }).allowed).toBe(true)

    const first = limiter.take('key', { now: start })
    expect(first).toMatchObject({ allowed: true, remaining: 0, resetAfterMs: end - start })
    const middle = start + Math.floor((end - start) / 2)
    for (const now of [start, middle, end - 1]) {
      expect(limiter.take('key', { now })).toMatchObject({ allowed: false, reason: 'quota', retryAfterMs: end - now })
    }
    const last = limiter.take('key', { now: end - microsecond })
    expect(last).toMatchObject({ allowed: false, retryAfterMs: microsecond })
    expect(limiter.take('key', { now: end })).toMatchObject({ allowed: true, remaining: 0 })
  })
})

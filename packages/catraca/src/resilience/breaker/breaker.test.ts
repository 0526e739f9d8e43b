import { describe, expect, test } from 'vitest'
import { Breaker } from './breaker.ts'
import { isDependencyFailure } from './dependency-failure.ts'

const us = (seconds: number): number => Math.round(seconds * 1e6)

/** Open since the failure at 4 s. */
function opened(): Breaker {
  const breaker = new Breaker()
  for (const second of [0, 1, 2, 3, 4]) {
    expect(breaker.ask(us(second))).toBe('go')
    breaker.fail(us(second))
  }
  return breaker
}

describe('a breaker', () => {
  test('acceptance 222: failures at 0, 1, 2, 3, 4 s open it for 30 s; 5 and 33.9 are refused, at 34.0 one trial of two goes', () => {
    const breaker = opened()
    expect(breaker.state).toBe('open')
    expect(breaker.reopensAtUs).toBe(us(34))
    expect(breaker.ask(us(5))).toBe('refuse')
    expect(breaker.ask(us(33.9))).toBe('refuse')
    expect(breaker.ask(us(34) - 1)).toBe('refuse')
    expect([breaker.ask(us(34)), breaker.ask(us(34))]).toEqual(['trial', 'refuse'])
    expect(breaker.ask(us(100))).toBe('refuse')
  })

  test('acceptance 223: after a bad trial at 34.0 s the next goes at 64.0 s; a good one closes it with 0 counted', () => {
    const breaker = opened()
    expect(breaker.ask(us(34))).toBe('trial')
    breaker.fail(us(34))
    expect(breaker.ask(us(63.999))).toBe('refuse')
    expect([breaker.ask(us(64)), breaker.ask(us(64))]).toEqual(['trial', 'refuse'])
    breaker.succeed()
    expect(breaker).toMatchObject({ state: 'closed', failuresInRow: 0, reopensAtUs: undefined })
    for (let second = 65; second < 69; second++) breaker.fail(us(second))
    expect(breaker.ask(us(69))).toBe('go')
    breaker.fail(us(69))
    expect(breaker.ask(us(69))).toBe('refuse')
  })

  test('acceptance 223: the 30 s begin at the failure of the trial, not at its start', () => {
    const breaker = opened()
    breaker.ask(us(34))
    breaker.fail(us(40))
    expect(breaker.ask(us(69.9))).toBe('refuse')
    expect(breaker.ask(us(70))).toBe('trial')
  })

  test('acceptance 224: 4 failures, 1 success, 4 failures leave it closed', () => {
    const breaker = new Breaker()
    for (let call = 0; call < 4; call++) breaker.fail(us(call))
    breaker.succeed()
    for (let call = 5; call < 9; call++) breaker.fail(us(call))
    expect(breaker).toMatchObject({ state: 'closed', failuresInRow: 4 })
    expect(breaker.ask(us(9))).toBe('go')
  })

  test('takes its numbers from its options', () => {
    const breaker = new Breaker({ failures: 2, openUs: 500_000 })
    breaker.fail(0)
    expect(breaker.ask(0)).toBe('go')
    breaker.fail(0)
    expect([breaker.ask(499_999), breaker.ask(500_000)]).toEqual(['refuse', 'trial'])
  })

  test('opens at once when tripped, and for openUs again when a trial trips it', () => {
    const breaker = new Breaker()
    breaker.trip(us(1))
    expect([breaker.ask(us(30.9)), breaker.ask(us(31))]).toEqual(['refuse', 'trial'])
    breaker.trip(us(32))
    expect([breaker.ask(us(61.9)), breaker.ask(us(62))]).toEqual(['refuse', 'trial'])
  })

  test('is not moved, while open, by calls that began before it opened', () => {
    const breaker = opened()
    breaker.succeed()
    breaker.fail(us(20))
    expect(breaker).toMatchObject({ state: 'open', reopensAtUs: us(34) })
  })

  test('is not kept open for longer than openUs by a clock that was set back', () => {
    const breaker = opened()
    expect(breaker.ask(us(-3_600))).toBe('refuse')
    expect(breaker.ask(us(-3_570.1))).toBe('refuse')
    expect(breaker.ask(us(-3_570))).toBe('trial')
  })
})

describe('an answer of a dependency', () => {
  test('acceptance 225: 429 is not a failure by default, and is one where that is set', () => {
    expect(isDependencyFailure(429)).toBe(false)
    expect(isDependencyFailure(429, { tooManyRequests: true })).toBe(true)
    const breaker = new Breaker()
    for (let call = 0; call < 100; call++) if (isDependencyFailure(429)) breaker.fail(call)
    expect(breaker.state).toBe('closed')
  })

  test('is a failure when it is 5xx or missing, and no other', () => {
    for (const status of [undefined, 500, 502, 503, 504, 599]) expect(isDependencyFailure(status)).toBe(true)
    for (const status of [200, 204, 301, 304, 400, 401, 404, 408]) expect(isDependencyFailure(status)).toBe(false)
  })
})

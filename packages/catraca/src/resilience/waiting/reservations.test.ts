import { describe, expect, test } from 'vitest'
import { Reservations } from './reservations.ts'

describe('those who were given a time', () => {
  const line = (count: number) => {
    const reservations = new Reservations<number>()
    const entries = Array.from({ length: count }, (_, ticket) => reservations.add('k', ticket, 100 * (ticket + 1)))
    return {
      reservations,
      entries: entries as [(typeof entries)[0], ...typeof entries],
      at: (n: number) => entries[n] as (typeof entries)[0],
    }
  }

  test('wait in the order in which they came, and leave nothing behind', () => {
    const { reservations, at } = line(3)
    expect(reservations.waitingAt('k')).toEqual([0, 1, 2])
    reservations.leave(at(0))
    reservations.leave(at(2))
    expect(reservations.waitingAt('k')).toEqual([1])
    reservations.leave(at(1))
    reservations.leave(at(1))
    expect(reservations.size).toBe(0)
  })

  test('one that could not be given back is asked for again once those behind it are gone', () => {
    const { reservations, at } = line(3)
    for (const place of [0, 1]) {
      reservations.abort(at(place))
      reservations.ask(at(place))
      expect(reservations.gaveBack(at(place), 0)).toBeUndefined()
    }
    reservations.abort(at(2))
    expect(reservations.ask(at(2))).toBe(0)
    expect(reservations.gaveBack(at(2), 5)).toBe(at(1))
    // What came back was charged after it.
    expect(reservations.ask(at(1))).toBe(5)
    expect(reservations.gaveBack(at(1), 5)).toBe(at(0))
    expect(reservations.ask(at(0))).toBe(10)
    expect(reservations.gaveBack(at(0), 5)).toBeUndefined()
    expect(reservations.size).toBe(0)
  })

  test('one whose answer is under way is not asked for twice', () => {
    const { reservations, at } = line(2)
    for (const place of [0, 1]) reservations.abort(at(place))
    reservations.ask(at(0))
    reservations.ask(at(1))
    expect(reservations.gaveBack(at(1), 5)).toBeUndefined()
    expect(reservations.gaveBack(at(0), 5)).toBeUndefined()
    expect(reservations.size).toBe(0)
  })

  test('one that was refused while others were behind is asked for again if they went meanwhile', () => {
    const { reservations, at } = line(2)
    for (const place of [0, 1]) reservations.abort(at(place))
    reservations.ask(at(0))
    reservations.ask(at(1))
    reservations.gaveBack(at(1), 5)
    expect(reservations.gaveBack(at(0), 0)).toBe(at(0))
    reservations.ask(at(0))
    expect(reservations.gaveBack(at(0), 0)).toBeUndefined()
  })

  test('what was given back out of the middle counts for those before it only when they start or end the line', () => {
    const { reservations, at } = line(3)
    reservations.abort(at(1))
    reservations.ask(at(1))
    reservations.gaveBack(at(1), 5)
    expect(reservations.levelsBehind(at(0))).toBe(5)
    expect(reservations.levelsBehind(at(2))).toBe(0)
    reservations.abort(at(0))
    expect(reservations.ask(at(0))).toBe(0)
  })

  test('an answer for one that is forgotten by then changes nothing', () => {
    const { reservations, at } = line(3)
    reservations.abort(at(0))
    reservations.ask(at(0))
    reservations.leave(at(1))
    expect(reservations.gaveBack(at(0), 5)).toBeUndefined()
    expect(reservations.levelsBehind(at(2))).toBe(0)
  })

  test('one that gave up is forgotten when its time has passed and others still wait', () => {
    const { reservations, at } = line(3)
    reservations.abort(at(0))
    reservations.ask(at(0))
    reservations.gaveBack(at(0), 0)
    reservations.leave(at(1))
    expect(reservations.gaveBack(at(0), 5)).toBeUndefined()
    expect(reservations.waitingAt('k')).toEqual([2])
    reservations.leave(at(2))
    expect(reservations.size).toBe(0)
  })
})

import { BlockList } from 'node:net'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as List from '../../src/policy/address-list.ts'

/** A literal path into another project is an error of the compiler. */
const listFile = new URL('../../src/policy/address-list.ts', import.meta.url).href
const { AddressList } = (await import(listFile)) as typeof List

const v4 = fc
  .array(fc.constantFrom(0, 1, 10, 127, 128, 192, 255), { minLength: 4, maxLength: 4 })
  .map((parts) => parts.join('.'))
const v6 = fc
  .array(fc.constantFrom('0', '1', '7fff', '8000', 'ffff', '2001', 'db8'), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.join(':'))
const network4 = fc.tuple(v4, fc.integer({ min: 0, max: 32 }))
const network6 = fc.tuple(v6, fc.integer({ min: 0, max: 128 }))

describe('AddressList', () => {
  test('holds what node:net holds of the same networks', () => {
    let hits = 0
    fc.assert(
      fc.property(
        fc.array(network4, { maxLength: 2 }),
        fc.array(network6, { maxLength: 2 }),
        v4,
        v6,
        (nets4, nets6, a4, a6) => {
          const [judge4, judge6] = [new BlockList(), new BlockList()]
          for (const [base, prefix] of nets4) judge4.addSubnet(base, prefix, 'ipv4')
          for (const [base, prefix] of nets6) judge6.addSubnet(base, prefix, 'ipv6')
          const list = new AddressList(
            [...nets4, ...nets6].map(([base, prefix]) => `${base}/${prefix}`),
            'list',
          )
          expect(list.has(a4)).toBe(judge4.check(a4, 'ipv4'))
          expect(list.has(`::ffff:${a4}`)).toBe(judge4.check(a4, 'ipv4'))
          expect(list.has(a6)).toBe(judge6.check(a6, 'ipv6'))
          if (list.has(a4) || list.has(a6)) hits++
        },
      ),
      { numRuns: 1_000 },
    )
    expect(hits).toBeGreaterThan(50)
  })

  test.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '::ffff:a01:203', true],
    ['10.1.2.3/8', '10.9.9.9', true],
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['0.0.0.0/0', '255.255.255.255', true],
    ['::ffff:10.0.0.0/104', '10.1.2.3', true],
    ['::ffff:10.1.2.3', '10.1.2.3', true],
    ['::/0', '10.1.2.3', false],
    ['::/0', '2001:db8::1', true],
    ['2001:db8::/32', '2001:DB8:FFFF::1', true],
    ['2001:db8::/32', '2001:db9::', false],
    ['2001:db8::1', '2001:db8:0:0::1', true],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['10.0.0.0/8', 'unknown', false],
    ['10.0.0.0/8', '', false],
    ['10.0.0.0/8', '010.0.0.1', false],
  ])('%s holds %s: %s', (entry, address, held) => {
    expect(new AddressList([entry], 'list').has(address)).toBe(held)
  })

  test.each([
    '',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/08',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0',
    '2001:db8::/129',
    'localhost',
    'fe80::1%eth0',
    7,
  ])('%j is neither an address nor a network', (entry) => {
    const make = () => new AddressList(['10.0.0.0/8', entry as string], 'trust.from')
    expect(make).toThrow(
      expect.objectContaining({ code: 'CATRACA_OPTION_INVALID', path: 'trust.from[1]', value: entry }),
    )
    expect(make).toThrow(/trust\.from\[1\] is .*; allowed: an address such as/)
  })

  test('a text is no list', () => {
    expect(() => new AddressList('10.0.0.0/8' as never, 'trust.from')).toThrow(
      /trust\.from is "10\.0\.0\.0\/8"; allowed/,
    )
  })
})

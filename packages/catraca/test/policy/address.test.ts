import { isIP } from 'node:net'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as Address from '../../src/policy/address.ts'

/** A literal path into another project is an error of the compiler. */
const addressFile = new URL('../../src/policy/address.ts', import.meta.url).href
const { canonicalAddress, networkOf } = (await import(addressFile)) as typeof Address

/** The text of 128 bits by the URL parser of the platform. */
function judgeText(bits: bigint): string {
  if (bits >> 32n === 0xffffn) return v4Text(bits & 0xffff_ffffn)
  return new URL(`http://[${longForm(bits)}]/`).hostname.slice(1, -1)
}

function v4Text(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((bits >> shift) & 255n)).join('.')
}

function groupsOf(bits: bigint): string[] {
  return Array.from({ length: 8 }, (_, index) => ((bits >> BigInt(112 - 16 * index)) & 0xffffn).toString(16))
}

function longForm(bits: bigint): string {
  return groupsOf(bits).join(':')
}

/** Spellings of 128 bits that mean the same. */
function spellings(bits: bigint): string[] {
  const groups = groupsOf(bits)
  const full = groups.map((group) => group.padStart(4, '0'))
  const dotted = `${groups.slice(0, 6).join(':')}:${v4Text(bits & 0xffff_ffffn)}`
  const shortened = groups.flatMap((_, from) =>
    groups.slice(from).flatMap((_, length) => {
      const to = from + length + 1
      const zeros = groups.slice(from, to).every((group) => group === '0')
      return zeros ? [`${groups.slice(0, from).join(':')}::${groups.slice(to).join(':')}`] : []
    }),
  )
  const texts = [groups.join(':'), full.join(':'), full.join(':').toUpperCase(), dotted, ...shortened]
  return [...texts, `${groups.join(':')}%eth0`]
}

const group = fc.oneof({ weight: 2, arbitrary: fc.constant(0n) }, fc.bigInt(0n, 0xffffn))
const bits128 = fc.oneof(
  fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.reduce((all, one) => (all << 16n) | one, 0n)),
  fc.bigInt(0n, 0xffff_ffffn).map((low) => (0xffffn << 32n) | low),
)

describe('canonicalAddress', () => {
  test('every spelling of an address gives the text that the platform writes, mapped ones the IPv4 address', () => {
    fc.assert(
      fc.property(bits128, (bits) => {
        for (const text of spellings(bits)) expect([text, canonicalAddress(text)]).toEqual([text, judgeText(bits)])
      }),
      { numRuns: 500 },
    )
  })

  test('exactly what node:net takes for an address is one', () => {
    const near = fc
      .array(
        fc.constantFrom(
          '0',
          '1',
          '9',
          '25',
          '255',
          '256',
          'a',
          'F',
          'ffff',
          '0db8',
          '12345',
          'g',
          '.',
          ':',
          '::',
          '1.2.3.4',
          '[',
          ' ',
        ),
        {
          maxLength: 14,
        },
      )
      .map((parts) => parts.join(''))
    const joined = fc
      .tuple(
        fc.constantFrom('.', ':'),
        fc.array(fc.constantFrom('', '0', '00', '1', '12', '255', '256', 'ffff', '1.2.3.4'), { maxLength: 9 }),
      )
      .map(([separator, parts]) => parts.join(separator))
    let addresses = 0
    fc.assert(
      fc.property(fc.oneof(near, joined, joined), (text) => {
        if (isIP(text) !== 0) addresses++
        expect([text, canonicalAddress(text) !== undefined]).toEqual([text, isIP(text) !== 0])
        expect([text, networkOf(text) !== undefined]).toEqual([text, isIP(text) !== 0])
      }),
      { numRuns: 1_000 },
    )
    expect(addresses).toBeGreaterThan(10)
  })

  test.each([
    ['1.2.3.4', '1.2.3.4'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:102:304', '1.2.3.4'],
    ['0:0:0:0:0:FFFF:0102:0304', '1.2.3.4'],
    ['::ffff:255.255.255.255', '255.255.255.255'],
    ['2001:db8:1234:5678::1.2.3.4', '2001:db8:1234:5678::102:304'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
    ['::1.2.3.4', '::102:304'],
    ['::fffe:1.2.3.4', '::fffe:102:304'],
    ['1::ffff:1.2.3.4', '1::ffff:102:304'],
    ['::', '::'],
    ['::1', '::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::ffff:1.2.3.4%1', '1.2.3.4'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical)
  })

  test.each([
    '',
    'unknown',
    '_obf',
    '010.1.1.1',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '1.2.3.',
    '1..2.3',
    ' 1.2.3.4',
    '1.2.3.4 ',
    '1.2.3.4:80',
    '1.2.3.4%eth0',
    '0x1.2.3.4',
    '١.2.3.4',
    '[::1]',
    '::1%',
    '::1%a/b',
    ':::',
    '1::2::3',
    '::ffff:1.2.3',
    '1.2.3.4::',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    '::g',
    `::${':'.repeat(10_000)}`,
    '1'.repeat(10_000),
  ])('%s is no address', (text) => {
    expect(canonicalAddress(text)).toBeUndefined()
    expect(networkOf(text)).toBeUndefined()
  })
})

describe('networkOf', () => {
  test('is the address with the bits after the prefix cleared, as a model in whole numbers has it', () => {
    fc.assert(
      fc.property(bits128, fc.integer({ min: 1, max: 128 }), (bits, prefix) => {
        const rest = BigInt(128 - prefix)
        const mapped = bits >> 32n === 0xffffn
        // The platform would write a cleared prefix that looks mapped as IPv4; such prefixes are longer than a network's.
        const network = new URL(`http://[${longForm((bits >> rest) << rest)}]/`).hostname.slice(1, -1)
        const expected = mapped ? judgeText(bits) : `${network}/${prefix}`
        for (const text of spellings(bits)) expect([text, networkOf(text, prefix)]).toEqual([text, expected])
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    ['1.2.3.4', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:102:304', '1.2.3.4'],
    ['2001:db8:1234:5678::1.2.3.4', '2001:db8:1234:5678::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2002:102:304::1', '2002:102:304::/64'],
    ['::1', '::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['2001:DB8:0001:0002::', '2001:db8:1:2::/64'],
  ])('%s is counted as %s', (text, network) => {
    expect(networkOf(text)).toBe(network)
  })

  test('a shorter prefix makes larger networks', () => {
    expect(networkOf('2001:db8:1:2ff::1', 56)).toBe('2001:db8:1:200::/56')
    expect(networkOf('2001:db8:1:2ff::1', 128)).toBe('2001:db8:1:2ff::1/128')
  })
})

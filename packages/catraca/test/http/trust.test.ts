import { isIP } from 'node:net'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as TrustModule from '../../src/http/trust.ts'

/** A literal path into another project is an error of the compiler. */
const trustFile = new URL('../../src/http/trust.ts', import.meta.url).href
const { Trust } = (await import(trustFile)) as typeof TrustModule

const peer = '10.0.0.2'

/** The address of a caller by `X-Forwarded-For`, or by `Forwarded` when the options say so. */
function caller(
  options: TrustModule.TrustOptions | undefined,
  value: string | undefined,
  from: string | undefined = peer,
): string {
  const header = options?.header ?? 'x-forwarded-for'
  return new Trust(options).addressOf(from, (name) => (name === header ? value : undefined))
}

describe('counting from the right', () => {
  test.each([
    [1, '203.0.113.9'],
    [1, '6.6.6.6, 203.0.113.9'],
    [1, '6.6.6.6, 7.7.7.7, 203.0.113.9'],
    [2, '6.6.6.6, 203.0.113.9, 10.0.0.9'],
  ])('acceptance 97: behind %i trusted proxies the caller of %s is 203.0.113.9', (proxies, chain) => {
    expect(caller({ proxies }, chain)).toBe('203.0.113.9')
  })

  test('acceptance 98: without trusted proxies the address is that of the connection, whatever a header says', () => {
    expect(caller({ proxies: 0 }, '6.6.6.6')).toBe(peer)
    expect(caller({}, '6.6.6.6')).toBe(peer)
    expect(caller(undefined, '6.6.6.6')).toBe(peer)
    let asked = 0
    new Trust({}).addressOf(peer, () => String(asked++))
    expect(asked).toBe(0)
  })

  test.each([
    ['malformed', 'abc, def'],
    ['a template', '{${print(1)}}'],
    ['empty', ''],
    ['only commas', ', ,,, '],
    ['a broken address', '1.2.3.4.5'],
    ['leading zeros', '010.1.1.1'],
    ['unknown', 'unknown'],
    ['obfuscated', '_hidden'],
    ['IPv4 in brackets', '[1.2.3.4]'],
    ['a broken port', '1.2.3.4:port'],
    ['an empty port', '1.2.3.4:'],
    ['a port without brackets', '1.2.3.4:80:90'],
    ['an open bracket', '[2001:db8::1'],
    ['text behind a bracket', '[2001:db8::1]x80'],
    ['an address behind garbage', '203.0.113.9, unknown'],
    ['a quoted address', '"1.2.3.4"'],
    ['a long entry', `1.2.3.4${' '.repeat(9)}${'x'.repeat(10_000)}`],
    ['NUL', '1.2.3.4\0'],
  ])('acceptance 100: %s in the header gives the connection, and throws nothing', (_, chain) => {
    expect(caller({ proxies: 1 }, chain)).toBe(peer)
  })

  test('acceptance 100: a chain shorter than the proxies gives the connection, never the leftmost entry', () => {
    expect(caller({ proxies: 2 }, '6.6.6.6')).toBe(peer)
    expect(caller({ proxies: 3 }, '6.6.6.6, 203.0.113.9')).toBe(peer)
    expect(caller({ proxies: 1 }, undefined)).toBe(peer)
  })

  test('acceptance 100: of 300 entries the last 32 are looked at', () => {
    const entries = Array.from({ length: 300 }, (_, index) => `203.0.${index >> 8}.${index & 255}`)
    expect(caller({ proxies: 1 }, entries.join(','))).toBe('203.0.1.43')
    expect(caller({ proxies: 32 }, entries.join(', '))).toBe('203.0.1.12')
    expect(caller({ from: ['10.0.0.0/8', '203.0.0.0/16'] }, entries.join(','))).toBe(peer)
    const padded = entries.map((entry) => entry.padStart(400)).join(',')
    expect(caller({ proxies: 20 }, padded)).toBe('203.0.1.24')
    expect(caller({ proxies: 21 }, padded)).toBe(peer)
  })

  test.each([
    ['1.2.3.4:5678', '1.2.3.4'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['2001:db8::1:443', '2001:db8::1:443'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%eth0]:80', 'fe80::1'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['[::ffff:102:304]:80', '1.2.3.4'],
    [' 1.2.3.4\t', '1.2.3.4'],
    ['1.2.3.4, ', '1.2.3.4'],
    ['1.2.3.4,,', '1.2.3.4'],
  ])(
    'acceptance 100: a port and a zone are taken off where they are none of the address: %s is %s',
    (entry, address) => {
      expect(caller({ proxies: 1 }, entry)).toBe(address)
    },
  )

  test('acceptance 101: 1000 addresses of one /64 are one caller, those of another are not', () => {
    const trust = new Trust({ proxies: 1 })
    const keyOf = (entry: string): string => trust.networkOf(trust.addressOf(peer, () => entry))
    const keys = Array.from({ length: 1_000 }, (_, index) => keyOf(`2001:db8:0:7::${index.toString(16)}:1`))
    expect(new Set(keys)).toEqual(new Set(['2001:db8:0:7::/64']))
    expect(keyOf('2001:db8:0:8::1')).toBe('2001:db8:0:8::/64')
    expect(new Trust({ ipv6Prefix: 56 }).networkOf('2001:db8:0:7ff::1')).toBe('2001:db8:0:700::/56')
  })

  test('the connection is canonical too, and unknown where it has no address', () => {
    expect(caller(undefined, undefined, '::ffff:127.0.0.1')).toBe('127.0.0.1')
    expect(caller(undefined, undefined, 'FE80::1%eth0')).toBe('fe80::1')
    // The default of a parameter would stand in for undefined.
    expect(new Trust({}).addressOf(undefined, () => '6.6.6.6')).toBe('unknown')
    expect(new Trust({ proxies: 1 }).addressOf(undefined, () => '6.6.6.6')).toBe('6.6.6.6')
    expect(new Trust({ proxies: 1 }).addressOf('/tmp/socket', () => 'garbage')).toBe('unknown')
    expect(new Trust({ proxies: 1, from: [peer] }).addressOf(undefined, () => '6.6.6.6')).toBe('unknown')
    const trust = new Trust({})
    expect(['1.2.3.4', 'unknown', '', '2001:db8::1'].map((text) => trust.networkOf(text))).toEqual([
      '1.2.3.4',
      'unknown',
      'unknown',
      '2001:db8::/64',
    ])
  })

  test('what was asked for one peer does not stick to the next', () => {
    const trust = new Trust({ proxies: 1, from: ['10.0.0.0/8'] })
    const peers = [peer, peer, '192.0.2.1', peer, undefined, '192.0.2.2']
    expect(peers.map((one) => trust.addressOf(one, () => '203.0.113.9'))).toEqual([
      '203.0.113.9',
      '203.0.113.9',
      '192.0.2.1',
      '203.0.113.9',
      'unknown',
      '192.0.2.2',
    ])
  })
})

describe('trust by address', () => {
  test('with `proxies` the connection must come from one of them', () => {
    expect(caller({ proxies: 1, from: ['10.0.0.0/8'] }, '6.6.6.6, 203.0.113.9')).toBe('203.0.113.9')
    expect(caller({ proxies: 1, from: ['10.0.0.0/8'] }, '6.6.6.6', '203.0.113.9')).toBe('203.0.113.9')
    expect(caller({ proxies: 0, from: ['10.0.0.0/8'] }, '6.6.6.6')).toBe(peer)
    expect(caller({ proxies: 1, from: ['10.0.0.0/8'] }, '6.6.6.6', '::ffff:10.0.0.2')).toBe('6.6.6.6')
  })

  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['6.6.6.6, 203.0.113.9', '203.0.113.9'],
    ['6.6.6.6, 203.0.113.9, 10.0.0.9', '203.0.113.9'],
    ['6.6.6.6, 203.0.113.9, 192.0.2.1, 10.0.0.9:80', '203.0.113.9'],
    ['10.0.0.5, 203.0.113.9, 10.0.0.9', '203.0.113.9'],
    ['10.0.0.5, 10.0.0.9', '10.0.0.5'],
    ['6.6.6.6, unknown, 10.0.0.9', peer],
    ['', peer],
  ])('without `proxies` the first hop that is none of them is the caller: %s is %s', (chain, address) => {
    const from = ['10.0.0.0/8', '192.0.2.1']
    expect(caller({ from }, chain)).toBe(address)
    expect(caller({ from }, chain, '203.0.113.77')).toBe('203.0.113.77')
  })
})

describe('Forwarded (RFC 7239)', () => {
  test.each([
    ['for=203.0.113.9', '203.0.113.9'],
    ['for="203.0.113.9:4711"', '203.0.113.9'],
    ['for="203.0.113.9:_port"', '203.0.113.9'],
    ['for="[2001:db8::17]:4711"', '2001:db8::17'],
    ['for="[2001:DB8:cafe::17]"', '2001:db8:cafe::17'],
    ['For="[::ffff:1.2.3.4]:80"', '1.2.3.4'],
    ['FOR=203.0.113.9;Proto=http;by=203.0.113.43', '203.0.113.9'],
    ['proto=http;by="a;b,c";for=203.0.113.9', '203.0.113.9'],
    ['proto=http; for=203.0.113.9 ; host=x', '203.0.113.9'],
    ['for="203\\.0.113.9"', '203.0.113.9'],
    ['for=6.6.6.6, for=203.0.113.9', '203.0.113.9'],
    ['for=6.6.6.6,,for=203.0.113.9,', '203.0.113.9'],
    ['for="6.6.6.6, for=203.0.113.9', '203.0.113.9'],
    ['x="\\", for=203.0.113.9', '203.0.113.9'],
    ['for=6.6.6.6, for=203.0.113.9;ext="a, \\"for=7.7.7.7"', '203.0.113.9'],
  ])('%s is %s', (value, address) => {
    expect(caller({ proxies: 1, header: 'forwarded' }, value)).toBe(address)
  })

  test.each([
    'for=unknown',
    'for=_obf',
    'for="_obf:80"',
    'for="unknown:80"',
    'for=1.2.3.4:80',
    'for=[::1]',
    'for=[2001:db8::1]:80',
    'for=2001:db8::1',
    'for="2001:db8::1"',
    'for="[1.2.3.4]"',
    'for="1.2.3.4',
    'for=1.2.3.4"',
    'for=',
    'for',
    'by=1.2.3.4',
    'xfor=1.2.3.4',
    'for=1.2.3.4;for=5.6.7.8',
    '1.2.3.4',
    '"for=1.2.3.4"',
    'for="[2001:db8::17]:port"',
  ])('%s has no address', (value) => {
    expect(caller({ proxies: 1, header: 'forwarded' }, value)).toBe(peer)
  })

  test('an element that is longer than any honest one has no address', () => {
    const long = (length: number): string => `for=203.0.113.9;x=${'y'.repeat(length - 18)}`
    expect(caller({ proxies: 1, header: 'forwarded' }, long(512))).toBe('203.0.113.9')
    expect(caller({ proxies: 1, header: 'forwarded' }, long(513))).toBe(peer)
  })

  test('elements count as hops whether or not they say an address', () => {
    expect(caller({ proxies: 2, header: 'forwarded' }, 'for=6.6.6.6, for=203.0.113.9, by=1.1.1.1')).toBe('203.0.113.9')
    expect(caller({ proxies: 2, header: 'forwarded' }, 'for=203.0.113.9, for="_a, b"')).toBe('203.0.113.9')
    expect(caller({ proxies: 3, header: 'forwarded' }, 'for=203.0.113.9, for="_a, b"')).toBe(peer)
  })

  test('only the header that was chosen is read', () => {
    const asked: string[] = []
    for (const header of ['x-forwarded-for', 'forwarded'] as const) {
      new Trust({ proxies: 1, header }).addressOf(peer, (name) => {
        asked.push(name)
        return undefined
      })
    }
    expect(asked).toEqual(['x-forwarded-for', 'forwarded'])
  })
})

const junk = fc
  .array(
    fc.constantFrom(
      'for=',
      '"',
      '\\',
      ',',
      ';',
      '=',
      '[',
      ']',
      ':',
      '%',
      '1.2.3.4',
      '::1',
      '9',
      ' ',
      'unknown',
      '_x',
      '\0',
      'é',
    ),
    {
      maxLength: 40,
    },
  )
  .map((parts) => parts.join(''))

test('nothing a caller writes further left changes what the trusted proxies wrote, or throws', () => {
  fc.assert(
    fc.property(
      junk,
      fc.constantFrom('x-forwarded-for', 'forwarded'),
      fc.integer({ min: 1, max: 3 }),
      (left, header, proxies) => {
        const own = ['203.0.113.9', '10.0.0.8', '10.0.0.9'].slice(0, proxies)
        const written = own.map((entry) => (header === 'forwarded' ? `proto=http;for="${entry}:80"` : entry)).join(', ')
        expect(caller({ proxies, header }, `${left}, ${written}`)).toBe('203.0.113.9')
        const alone = caller({ proxies, header }, left)
        expect(isIP(alone)).not.toBe(0)
        expect(isIP(caller({ from: ['0.0.0.0/0', '::/0'], header }, left))).not.toBe(0)
      },
    ),
    { numRuns: 1_000 },
  )
})

test('a header of 64 KiB that is made to be slow is read in less than half a second', () => {
  const nasty = ['"\\"', '"', '\\', ',', '",', '"\\",', ';"', 'for="\\', '[', ':'].map((text) =>
    text.repeat(65_536 / text.length),
  )
  for (const header of ['x-forwarded-for', 'forwarded'] as const) {
    for (const value of nasty) {
      const before = performance.now()
      caller({ from: ['0.0.0.0/0'], header }, value)
      caller({ proxies: 32, header }, value)
      expect(performance.now() - before).toBeLessThan(500)
    }
  }
})

describe('wrong options are found at start', () => {
  test.each([
    [{ proxies: 33 }, 'trust.proxies is 33; allowed: a whole number of proxies from 0 to 32'],
    [{ proxies: -1 }, 'trust.proxies is -1'],
    [{ proxies: 1.5 }, 'trust.proxies is 1.5'],
    [{ proxies: '1' }, 'trust.proxies is "1"'],
    [{ proxies: Number.NaN }, 'trust.proxies is NaN'],
    [{ from: [] }, 'trust.from is an array; allowed: at least one'],
    [{ from: '10.0.0.0/8' }, 'trust.from is "10.0.0.0/8"'],
    [{ from: ['10.0.0.0/8', 'proxy'] }, 'trust.from[1] is "proxy"'],
    [{ header: 'x-real-ip' }, 'trust.header is "x-real-ip"; allowed: "x-forwarded-for", "forwarded"'],
    [{ ipv6Prefix: 31 }, 'trust.ipv6Prefix is 31; allowed: a whole number of bits from 32 to 128'],
    [{ ipv6Prefix: 129 }, 'trust.ipv6Prefix is 129'],
    [true, 'trust is true; allowed: an object of options'],
  ])('%j', (options, message) => {
    expect(() => new Trust(options as never)).toThrow(expect.objectContaining({ code: 'CATRACA_OPTION_INVALID' }))
    expect(() => new Trust(options as never)).toThrow(message)
  })

  test('an unknown option is named with its path', () => {
    const make = () => new Trust({ proxy: 1 } as never, 'options.trust')
    expect(make).toThrow(expect.objectContaining({ code: 'CATRACA_OPTION_UNKNOWN', path: 'options.trust.proxy' }))
    expect(make).toThrow('did you mean proxies?')
  })
})

import { describe, expect, test } from 'vitest'
import { network } from '../src/edge/address.ts'
import { forwardedNetwork } from '../src/edge/forwarded.ts'
import { ask, startGateway, startUpstream } from './helpers.ts'

describe('the network an address is counted under', () => {
  test.each([
    ['1.2.3.4', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:1.2.3.4', '1.2.3.4'],
    ['::ffff:102:304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:0102:0304', '1.2.3.4'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:2::', '2001:db8:1:2::/64'],
    ['2001:db8::5', '2001:db8:0:0::/64'],
    ['2001:db8:1234:5678::1.2.3.4', '2001:db8:1234:5678::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::1.2.3.4', '64:ff9b:0:0::/64'],
  ])('%s counts as %s', (text, expected) => {
    expect(network(text)).toBe(expected)
  })

  test.each([
    '',
    'unknown',
    'example.com',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.4:80',
    '[::1]',
    ':::',
    '%',
    '1::2::3',
  ])('%j is no address', (text) => {
    expect(network(text)).toBeUndefined()
  })
})

describe('X-Forwarded-For behind trusted proxies', () => {
  test.each<[string, number, string | undefined]>([
    ['1.1.1.1', 1, '1.1.1.1'],
    ['6.6.6.6, 1.1.1.1', 1, '1.1.1.1'],
    ['6.6.6.6, 1.1.1.1, 10.0.0.1', 2, '1.1.1.1'],
    ['1.1.1.1, 10.0.0.1', 3, undefined],
    ['1.1.1.1,,  , 10.0.0.1,', 2, '1.1.1.1'],
    ['1.1.1.1:5678', 1, '1.1.1.1'],
    ['[2001:db8::17]:4711', 1, '2001:db8:0:0::/64'],
    ['[2001:db8::17]', 1, '2001:db8:0:0::/64'],
    ['2001:db8::17', 1, '2001:db8:0:0::/64'],
    ['2001:db8::17:4711', 1, '2001:db8:0:0::/64'],
    ['[::ffff:1.1.1.1]:80', 1, '1.1.1.1'],
    ['[1.1.1.1]', 1, undefined],
    ['unknown', 1, undefined],
    ['client.example.com', 1, undefined],
    ['_hidden', 1, undefined],
    ['{${print(1)}}', 1, undefined],
    ['1.1.1.1:port', 1, undefined],
    ['1.1.1.1 2.2.2.2', 1, undefined],
    ['', 1, undefined],
    [',', 1, undefined],
    ['1.1.1.1,'.repeat(40), 31, '1.1.1.1'],
    [`1.1.1.1${','.repeat(32)}`, 1, undefined],
    ['1'.repeat(10_000), 1, undefined],
  ])('%j behind %i', (header, hops, expected) => {
    expect(forwardedNetwork(header, hops)).toBe(expected)
  })

  test('never throws, whatever the bytes', () => {
    for (let code = 0; code < 256; code++) {
      const odd = String.fromCharCode(code)
      for (const text of [odd, odd.repeat(50), `[${odd}]:1`, `1.1.1.1${odd}`, `${odd},${odd}`]) {
        expect(() => forwardedNetwork(text, 1)).not.toThrow()
      }
    }
  })
})

describe('whom the gateway counts', () => {
  const once = { limit: 1, window: '1d', burst: 1 } as const
  const from = (chain: string): { headers: Record<string, string> } => ({ headers: { 'X-Forwarded-For': chain } })

  test('without trust a caller cannot change the address it is counted under', async () => {
    const { url } = await startGateway((await startUpstream()).origin, once)
    expect((await ask(url, from('1.1.1.1'))).status).toBe(200)
    expect((await ask(url, from('2.2.2.2'))).status).toBe(429)
  })

  test('behind one proxy the last entry counts, whatever stands before it', async () => {
    const { url } = await startGateway((await startUpstream()).origin, { ...once, trust: 1 })
    expect((await ask(url, from('9.9.9.9, 1.1.1.1'))).status).toBe(200)
    expect((await ask(url, from('8.8.8.8, 1.1.1.1'))).status).toBe(429)
    expect((await ask(url, from('9.9.9.9, 2.2.2.2'))).status).toBe(200)
  })

  test('a chain that is too short, garbage and no chain at all share the limit of the connection', async () => {
    const { url } = await startGateway((await startUpstream()).origin, { ...once, trust: 2 })
    expect((await ask(url, from('1.1.1.1'))).status).toBe(200)
    expect((await ask(url, from('unknown, 1.1.1.1'))).status).toBe(429)
    expect((await ask(url)).status).toBe(429)
    expect((await ask(url, from('1.1.1.1, 10.0.0.1'))).status).toBe(200)
  })

  test('two addresses of one /64 share a limit', async () => {
    const { url } = await startGateway((await startUpstream()).origin, { ...once, trust: 1 })
    expect((await ask(url, from('2001:db8::1'))).status).toBe(200)
    expect((await ask(url, from('[2001:db8::2]:443'))).status).toBe(429)
    expect((await ask(url, from('2001:db8:0:1::1'))).status).toBe(200)
  })

  test('by header each value has a limit, and requests without it go by address', async () => {
    const { url } = await startGateway((await startUpstream()).origin, { ...once, per: 'header:X-Api-Key' })
    const key = (value: string): Promise<number> => ask(url, { headers: { 'x-api-key': value } }).then((a) => a.status)
    expect([await key('a'), await key('b'), await key('a')]).toEqual([200, 200, 429])
    // The address as a key, or a name that looks like one of another kind, is still only a value.
    expect([await key('127.0.0.1'), await key('addr:127.0.0.1')]).toEqual([200, 200])
    expect([(await ask(url)).status, (await ask(url)).status, await key('')]).toEqual([200, 429, 429])
  })
})

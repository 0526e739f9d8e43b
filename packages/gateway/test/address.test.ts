import { describe, expect, test } from 'vitest'
import { ask, startGateway, startUpstream } from './helpers.ts'

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

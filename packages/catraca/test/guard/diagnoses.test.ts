import { createGuard, type Guard } from 'catraca/http'
import type { PolicyDocument, TrustEntry } from 'catraca/policy'
import { describe, expect, test, vi } from 'vitest'
import { type Asked, ask } from './requests.ts'

const rule = { algorithm: 'token-bucket', limit: 1_000_000, window: '1m' }

function guardOf(trust?: TrustEntry): { guard: Guard<Asked>; told: () => string[]; messages: () => string[] } {
  const policies: PolicyDocument = {
    version: 1,
    ...(trust !== undefined && { trust }),
    policies: { net: { per: 'address', rule } },
  }
  const diagnosis = vi.fn<(event: { code: string; help: string; message: string }) => void>()
  const guard = createGuard<Asked>({ policies, on: { diagnosis } })
  const events = () => diagnosis.mock.calls.map(([event]) => event)
  return { guard, told: () => events().map(({ code }) => code), messages: () => events().map(({ message }) => message) }
}

function from(chain: string, peer = '10.0.0.1', header = 'x-forwarded-for'): Asked {
  return { peer, headers: { [header]: chain } }
}

describe('a forwarding header of a stranger', () => {
  test('is told once where trust.from does not name it, and where nothing is said of proxies', () => {
    const named = guardOf({ from: ['10.0.0.0/8'] })
    ask(named.guard, from('192.0.2.9', '10.0.0.1'))
    expect(named.told()).toEqual([])
    for (let count = 0; count < 3; count++) ask(named.guard, from('192.0.2.9', '203.0.113.5'))
    expect(named.told()).toEqual(['CATRACA_FORWARDED_UNTRUSTED'])
    expect(named.messages()[0]).toContain('"203.0.113.5" sent x-forwarded-for, which trust.from does not name')

    const silent = guardOf()
    ask(silent.guard, { peer: '203.0.113.5' })
    expect(silent.told()).toEqual([])
    ask(silent.guard, from('for=192.0.2.9', '203.0.113.5', 'forwarded'))
    ask(silent.guard, from('192.0.2.9', '203.0.113.5'))
    expect(silent.told()).toEqual(['CATRACA_FORWARDED_UNTRUSTED'])
    expect(silent.messages()[0]).toContain('sent forwarded, and nothing says which proxies are in front')
  })

  test('is no news where it was said that nobody is in front', () => {
    const { guard, told } = guardOf({ proxies: 0 })
    ask(guard, from('192.0.2.9', '203.0.113.5'))
    expect(told()).toEqual([])
  })
})

test('an address of one’s own network at the end of a chain is told once', () => {
  for (const address of [
    '10.1.2.3',
    '172.31.0.1',
    '192.168.0.1',
    '100.64.0.1',
    '169.254.1.1',
    '127.0.0.1',
    '::1',
    'fd00::1',
    'fe80::1',
  ]) {
    const { guard, told } = guardOf({ proxies: 1 })
    ask(guard, from(address))
    ask(guard, from(address))
    expect(told(), address).toEqual(['CATRACA_ADDRESS_PRIVATE'])
  }
  for (const address of ['11.0.0.1', '172.32.0.1', '192.169.0.1', '100.128.0.1', '2001:db8::1', 'fe00::1', '::2']) {
    const { guard, told } = guardOf({ proxies: 1 })
    ask(guard, from(address))
    expect(told(), address).toEqual([])
  }
  // Without proxies the address is that of the connection, whatever it is.
  const direct = guardOf({ proxies: 0 })
  ask(direct.guard, { peer: '127.0.0.1' })
  expect(direct.told()).toEqual([])
})

describe('acceptance 99: a balancer that is not counted', () => {
  const chains = (count: number, seen: (index: number) => string): Asked[] =>
    Array.from({ length: count }, (_, index) => from(`${seen(index)}, 203.0.113.9`))

  test('makes all callers one key, and is told once', () => {
    const { guard, told, messages } = guardOf({ proxies: 1 })
    const requests = chains(2_000, (index) => `192.0.2.${index % 50}`)
    const addresses = new Set(requests.map((asked) => ask(guard, asked).address))
    expect([...addresses]).toEqual(['203.0.113.9'])
    expect(told()).toEqual(['CATRACA_ADDRESS_SHARED'])
    expect(messages()[0]).toContain('1000 of 1000 requests were counted as "203.0.113.9"')
  })

  test('is not seen in one busy caller, in many callers, or in few chains', () => {
    const busy = guardOf({ proxies: 1 })
    for (const asked of chains(3_000, () => '192.0.2.1')) ask(busy.guard, asked)
    const few = guardOf({ proxies: 1 })
    for (const asked of chains(3_000, (index) => `192.0.2.${index % 19}`)) ask(few.guard, asked)
    const many = guardOf({ proxies: 2 })
    for (const asked of chains(3_000, (index) => `198.51.${index % 200}.1`)) ask(many.guard, asked)
    const half = guardOf({ proxies: 1 })
    for (let index = 0; index < 1_000; index++) {
      const nearest = index % 2 === 0 ? '203.0.113.9' : `198.51.100.${index % 200}`
      ask(half.guard, from(`192.0.2.${index % 50}, ${nearest}`))
    }
    expect([busy, few, many, half].map(({ told }) => told())).toEqual([[], [], [], []])
  })
})

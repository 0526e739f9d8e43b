import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as Path from '../../src/policy/path.ts'

/** A literal path into another project is an error of the compiler. */
const pathFile = new URL('../../src/policy/path.ts', import.meta.url).href
const { normalPath } = (await import(pathFile)) as typeof Path

function readings(target: string, caseSensitive = false): readonly string[] {
  const path = normalPath(target, caseSensitive)
  return typeof path === 'string' ? [path] : path
}

describe('one reading', () => {
  test.each([
    ['/', '/'],
    ['', '/'],
    ['/login', '/login'],
    ['/login/', '/login'],
    ['/LOGIN', '/login'],
    ['/Login/A', '/login/a'],
    ['/login?x=1', '/login'],
    ['/login?x=/../y', '/login'],
    ['/login?x=%2f#y', '/login'],
    ['/login/?', '/login'],
    ['/?x', '/'],
    ['?x', '/'],
    ['/%6cogin', '/login'],
    ['/%6Cog%69n', '/login'],
    ['/%4cOGIN', '/login'],
    ['/a.b/..c/d..', '/a.b/..c/d..'],
    ['/.well-known/x', '/.well-known/x'],
    ['/caf%C3%A9', '/café'],
    ['/CAF%C3%89', '/café'],
    ['/%F0%9F%8E%9F', '/🎟'],
    ['/%256cogin', '/%256cogin'],
    ['/a%252fb', '/a%252fb'],
    ['/100%', '/100%25'],
    ['/%zz%6c', '/%25zzl'],
    ['/%c0%af', '/%25c0%25af'],
    ['/%ed%a0%80', '/%25ed%25a0%2580'],
    ['/%ff%6c%C3', '/%25ffl%25c3'],
    ['/%f4%90%80%80', '/%25f4%2590%2580%2580'],
    ['/a%3Fb', '/a%3fb'],
    ['/a%23b', '/a%23b'],
    ['/a%3bb', '/a%3bb'],
    ['/login%00', '/login\0'],
    ['/login%20', '/login '],
    ['login', '/login'],
    ['*', '/*'],
    ['http://host/login', '/login'],
    ['HTTP://user@host:80/LOGIN?x', '/login'],
    ['http://host', '/'],
    ['http://host/', '/'],
  ])('%j is %j', (target, path) => {
    expect(normalPath(target)).toBe(path)
  })

  test('cases are told apart where asked', () => {
    expect(normalPath('/Login/%4C', true)).toBe('/Login/L')
    expect(normalPath('/Login', true)).toBe('/Login')
  })
})

describe('several readings, first the one that separates and resolves all', () => {
  test.each([
    ['//login', ['/login', '//login', '/']],
    ['/a//b', ['/a/b', '/a//b']],
    ['/./login', ['/login', '/%2e/login']],
    ['/x/../login', ['/login', '/x/%2e%2e/login']],
    ['/../../login', ['/login', '/%2e%2e/%2e%2e/login']],
    ['/%2e/login', ['/login', '/%2e/login']],
    ['/x/%2E%2e/login', ['/login', '/x/%2e%2e/login']],
    ['/x/.%2e/login', ['/login', '/x/%2e%2e/login']],
    ['/login/.', ['/login', '/login/%2e']],
    ['/reports/a%2Fb/export', ['/reports/a/b/export', '/reports/a%2fb/export']],
    ['/reports/a%5cb/export', ['/reports/a/b/export', '/reports/a%5cb/export']],
    ['/a\\b', ['/a/b', '/a%5cb']],
    ['/a\\b%2fc', ['/a/b/c', '/a%5cb%2fc', '/a/b%2fc']],
    ['/a%2f..%2fb', ['/b', '/a%2f..%2fb']],
    ['/login;x=1', ['/login%3bx=1', '/login']],
    ['/login#x', ['/login', '/login%23x']],
    ['/login#x?y', ['/login', '/login%23x']],
    ['/a#b/../c', ['/a', '/a%23b/%2e%2e/c']],
    ['http://host?x/login', ['/', '/login']],
    ['http://host\\x/login', ['/x/login', '/%5cx/login', '/login']],
    ['//host/login', ['/host/login', '//host/login', '/login']],
    ['/\\host/login', ['/host/login', '/%5chost/login', '/login']],
  ])('%j is %j', (target, paths) => {
    expect(readings(target)).toEqual(paths)
  })
})

const piece = fc.constantFrom(
  'a',
  'B',
  'é',
  '.',
  '..',
  '/',
  '/',
  '//',
  '\\',
  '%2e',
  '%2E%2e',
  '%2f',
  '%5C',
  '%41',
  '%25',
  '%3f',
  '%23',
  '%3b',
  '%C3%A9',
  '%25%32%66',
)
const cut = fc.constantFrom('', '', '?q=/../x', '#f', ';p')
const targets = fc
  .tuple(
    fc.constantFrom('/', '/', '', '//', 'http://host/', 'http://host'),
    fc.array(piece, { maxLength: 12 }),
    cut,
    fc.array(piece, { maxLength: 4 }),
  )
  .map(([start, pieces, end, more]) => start + pieces.join('') + end + more.join(''))

test('the first reading is what decoding, cutting and resolving give one after the other', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), cut, (pieces, end) => {
      const path = `/${pieces.join('')}`
      const segments: string[] = []
      const decoded = decodeURIComponent(path).replaceAll('\\', '/').toLowerCase()
      for (const segment of decoded.split('/')) {
        if (segment === '..') segments.pop()
        else if (segment !== '' && segment !== '.') segments.push(segment)
      }
      const [first = ''] = readings(path + (end === ';p' ? '' : end))
      const found = first.split('/').map((segment) => decodeURIComponent(segment))
      expect(found.filter((segment) => segment !== '')).toEqual(segments)
    }),
    { numRuns: 1_000 },
  )
})

test('a reading is normal: its first reading where it is the first, one of its readings in any case', () => {
  let several = 0
  fc.assert(
    fc.property(targets, fc.boolean(), (target, caseSensitive) => {
      const all = readings(target, caseSensitive)
      if (all.length > 1) several++
      expect(normalPath(all[0] as string, caseSensitive)).toBe(all[0])
      for (const reading of all) {
        expect(reading).toMatch(/^\/(?:.*[^/])?$/s)
        expect(readings(reading, caseSensitive)).toContain(reading)
      }
    }),
    { numRuns: 1_000 },
  )
  expect(several).toBeGreaterThan(100)
})

test('the short way for plain paths gives what the long way gives', () => {
  const plain = fc
    .array(fc.constantFrom('a', 'B', 'c.d', '-', '~', 'x'), { minLength: 1, maxLength: 3 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(
      fc.array(plain, { maxLength: 4 }),
      fc.constantFrom('', '/', '?x', '/?x'),
      fc.boolean(),
      (parts, end, caseSensitive) => {
        const path = parts.map((part) => `/${part}`).join('') || '/'
        const [first] = readings(`/.${path}${end}`, caseSensitive)
        expect(normalPath(path === '/' && end.startsWith('/') ? path : path + end, caseSensitive)).toBe(first)
      },
    ),
    { numRuns: 500 },
  )
})

test('any text has a path, and one of 64 KiB that is made to be slow has it in less than half a second', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (text) => {
      for (const reading of readings(text)) expect(reading[0]).toBe('/')
    }),
    { numRuns: 500 },
  )
  for (const text of ['%', '%ff', '%2f', '..%2f', '/..', '\\', '//', '%C3', ';', '#', '?', 'http://', 'É', '%2e']) {
    const before = performance.now()
    normalPath(text.repeat(65_536 / text.length))
    normalPath(`/${text.repeat(65_536 / text.length)}`)
    expect(performance.now() - before).toBeLessThan(500)
  }
})

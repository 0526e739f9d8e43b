import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as Path from '../../src/policy/path.ts'
import type * as RouteModule from '../../src/policy/route.ts'

/** A literal path into another project is an error of the compiler. */
const [pathFile, routeFile] = ['path', 'route'].map(
  (file) => new URL(`../../src/policy/${file}.ts`, import.meta.url).href,
) as [string, string]
const { normalPath } = (await import(pathFile)) as typeof Path
const { parseRoute } = (await import(routeFile)) as typeof RouteModule

/** Whether a route matches a request such as `GET /x`. */
function matches(route: string, request: string, caseSensitive = false): boolean {
  const [method = '', target = ''] = request.split(' ')
  return parseRoute(route, 'routes[0]', caseSensitive).matches(method, normalPath(target, caseSensitive))
}

describe('paths', () => {
  test.each([
    ['/login', 'POST /login', true],
    ['/login', 'POST /logins', false],
    ['/login', 'POST /logi', false],
    ['/login', 'POST /login/x', false],
    ['/login', 'POST /', false],
    ['/', 'GET /', true],
    ['/', 'GET /x', false],
    ['/login/', 'GET /login', true],
    ['/Login', 'GET /lOGIN', true],
    ['/caf%C3%A9', 'GET /caf%c3%a9', true],
    ['/café', 'GET /CAF%C3%89', true],
    ['/100%25', 'GET /100%25', true],
    ['/a%2fb', 'GET /a%2Fb', true],
    ['/a%2fb', 'GET /a/b', false],
    ['/things:batch', 'GET /things:batch', true],
    ['/v1/reports/:id', 'GET /v1/reports/7', true],
    ['/v1/reports/:id', 'GET /v1/reports', false],
    ['/v1/reports/:id', 'GET /v1/reports/', false],
    ['/v1/reports/:id', 'GET /v1/reports/7/x', false],
    ['/v1/reports/:id/export', 'GET /v1/reports/7/export', true],
    ['/v1/reports/:id/export', 'GET /v1/reports/7/exports', false],
    ['/v1/*/export', 'GET /v1/x/export', true],
    ['/*', 'GET /', false],
    ['/health/**', 'GET /health', true],
    ['/health/**', 'GET /health/', true],
    ['/health/**', 'GET /health/a/b', true],
    ['/health/**', 'GET /healthy', false],
    ['**/login', 'POST /login', true],
    ['**/login', 'POST /a/b/login', true],
    ['**/login', 'POST /a/b/login/x', false],
    ['/**/login', 'POST /login', true],
    ['**', 'GET /', true],
    ['**', 'GET /a/b', true],
    ['/a/**/b/**/c', 'GET /a/b/c', true],
    ['/a/**/b/**/c', 'GET /a/x/b/b/y/c', true],
    ['/a/**/b/**/c', 'GET /a/x/c/y/b', false],
    ['/a/**/:x', 'GET /a', false],
    ['/a/**/:x/b', 'GET /a/b/b', true],
    ['/a/**/**/b', 'GET /a/b', true],
  ])('%s and %s: %s', (route, request, expected) => {
    expect(matches(route, request)).toBe(expected)
  })

  test('cases are told apart where asked, in the pattern and the path', () => {
    expect(matches('/Login', 'GET /Login', true)).toBe(true)
    expect(matches('/Login', 'GET /login', true)).toBe(false)
    expect(matches('/login/:Id', 'GET /login/X', true)).toBe(true)
  })
})

describe('methods', () => {
  test.each([
    ['/x', 'DELETE /x', true],
    ['POST /x', 'POST /x', true],
    ['POST /x', 'GET /x', false],
    ['POST /x', 'post /x', false],
    ['GET /x', 'HEAD /x', true],
    ['HEAD /x', 'GET /x', false],
    ['POST /x', 'HEAD /x', false],
    ['GET|POST /x', 'GET /x', true],
    ['GET|POST /x', 'HEAD /x', true],
    ['GET|POST /x', 'POST /x', true],
    ['GET|POST /x', 'PUT /x', false],
    ['M-SEARCH /x', 'M-SEARCH /x', true],
    ['GET  /x', 'GET /x', true],
  ])('%s and %s: %s', (route, request, expected) => {
    expect(matches(route, request)).toBe(expected)
  })
})

describe('targets that servers read differently', () => {
  const shown = parseRoute('GET /reports/:id/export', 'routes[0]')
  const health = parseRoute('GET /health/**', 'routes[0]')

  test.each([
    '/reports/a%2Fb/export',
    '/reports/a%5cb/export',
    '/reports/%2e%2e/export',
    '/reports/../export',
    '/reports//export',
    '/x/../reports/a/export',
  ])('a limit holds for %s, which some server takes for the route', (target) => {
    expect(shown.matches('GET', normalPath(target))).toBe(true)
  })

  test.each([
    '/health/../login',
    '/health/%2e%2e/login',
    '/health/..%2flogin',
    '/health\\..\\login',
    '//health/login',
    '/login/../health',
  ])('an exception does not hold for %s, which some server takes for another route', (target) => {
    expect(health.matchesSurely('GET', normalPath(target))).toBe(false)
  })

  test.each([
    '/health',
    '/health/',
    '/health/a',
    '/HEALTH/%61',
    '/health/a?b',
    '/health/a%2fb',
    '/health/a;b',
    '/health//a',
  ])('an exception holds for %s, which is the route to every server', (target) => {
    expect(health.matchesSurely('GET', normalPath(target))).toBe(true)
    expect(health.matchesSurely('HEAD', normalPath(target))).toBe(true)
    expect(health.matchesSurely('POST', normalPath(target))).toBe(false)
  })
})

/** A segment, `*` or `**`. */
type Part = string

/** The meaning of a pattern, word by word. */
function judge([part, ...parts]: readonly Part[], segments: readonly string[]): boolean {
  if (part === undefined) return segments.length === 0
  if (part === '**')
    return judge(parts, segments) || (segments.length > 0 && judge([part, ...parts], segments.slice(1)))
  const [segment, ...rest] = segments
  return segment !== undefined && (part === '*' || part === segment) && judge(parts, rest)
}

const parts = fc.array(fc.constantFrom('a', 'b', 'ab', '*', '**', '**'), { minLength: 1, maxLength: 7 })
const segments = fc.array(fc.constantFrom('a', 'b', 'ab', 'aba'), { maxLength: 8 })

test('a pattern matches what its words say, and its parameters are the segments they stand for', () => {
  let matched = 0
  fc.assert(
    fc.property(parts, segments, (pattern, path) => {
      let count = 0
      const text = pattern.map((part) => (part === '*' ? `:p${count++}` : part)).join('/')
      const route = parseRoute(`/${text}`, 'routes[0]')
      const normal = normalPath(`/${path.join('/')}`)
      const expected = judge(pattern, path)
      expect(route.matches('GET', normal)).toBe(expected)
      expect(route.matchesSurely('GET', normal)).toBe(expected)
      const params = route.params(normal)
      expect(params !== undefined).toBe(expected)
      if (params === undefined) return
      matched++
      let next = 0
      const filled = pattern.map((part) => (part === '*' ? (params[`p${next++}`] as string) : part))
      expect(Object.keys(params)).toHaveLength(count)
      expect(judge(filled, path)).toBe(true)
    }),
    { numRuns: 1_000 },
  )
  expect(matched).toBeGreaterThan(100)
})

test('parameters are decoded, of the first reading that fits', () => {
  const route = parseRoute('/reports/:id/export/:format', 'routes[0]')
  expect(route.params(normalPath('/reports/7/export/pdf'))).toEqual({ id: '7', format: 'pdf' })
  expect(route.params(normalPath('/reports/a%2fb%3f/export/pdf'))).toEqual({ id: 'a/b?', format: 'pdf' })
  expect(route.params(normalPath('/reports/100%25/export/PDF'))).toEqual({ id: '100%', format: 'pdf' })
  expect(route.params(normalPath('/reports/7'))).toBeUndefined()
  expect(parseRoute('/a/**/:x', 'routes[0]').params(normalPath('/a/b/c'))).toEqual({ x: 'c' })
})

test('many ** over a long path that almost matches take less than half a second', () => {
  const route = parseRoute(`${'/**/a'.repeat(50)}/b`, 'routes[0]')
  const path = normalPath('/a'.repeat(20_000))
  const before = performance.now()
  expect(route.matches('GET', path)).toBe(false)
  expect(performance.now() - before).toBeLessThan(500)
})

describe('what is no route is found at start', () => {
  test.each([
    '',
    'login',
    'GET',
    'GET login',
    'get /login',
    'GET,POST /login',
    'GET| /login',
    '|GET /login',
    '/a//b',
    '//a',
    '/a/../b',
    '/./a',
    '/%2e%2e/a',
    '/a?b',
    '/a#b',
    '/a;b',
    '/a\\b',
    '/a b',
    '/:',
    '/:1',
    '/:id?',
    '/:id(\\d+)',
    '/:id.json',
    '/*rest',
    '/***',
    '/a*',
    '/users{/:id}',
    '/(a|b)',
    '/[a]',
    7,
    null,
    undefined,
  ])('%j', (text) => {
    const make = () => parseRoute(text as string, 'policies.login.match.routes[1]')
    expect(make).toThrow(
      expect.objectContaining({ code: 'CATRACA_OPTION_INVALID', path: 'policies.login.match.routes[1]', value: text }),
    )
    expect(make).toThrow(/^policies\.login\.match\.routes\[1\] is .*; allowed: a path such as "\/v1\/reports\/:id"/)
  })

  test('a parameter that stands twice', () => {
    expect(() => parseRoute('/:id/x/:id', 'routes[0]')).toThrow('routes[0] is "/:id/x/:id"; allowed: "id" only once')
  })
})

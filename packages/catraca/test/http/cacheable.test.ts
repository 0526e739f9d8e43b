import { isPubliclyCacheable } from 'catraca/http'
import { expect, test } from 'vitest'

test.each([
  [undefined, false],
  ['', false],
  ['public', true],
  ['Public, max-age=60', true],
  ['max-age=60', false],
  ['s-maxage=60', true],
  ['max-age=60,S-MaxAge = 60', true],
  ['public, no-store', false],
  ['no-store,public', false],
  ['private', false],
  ['private="Set-Cookie", public', false],
  ['no-cache', false],
  ['public, no-cache', true],
  ['publicity', false],
  ['x="public"', false],
  ['=public', false],
  [' , ,public', true],
])('Cache-Control: %s: kept for others is %s', (value, expected) => {
  expect(isPubliclyCacheable(value)).toBe(expected)
})

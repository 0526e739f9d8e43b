import { createServer } from 'node:http'
import { rateLimit } from 'catraca/koa'
import Koa, { type Context } from 'koa'
import { afterEach, expect, test } from 'vitest'
import { serving } from './drivers/serving.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function answer(handler: (ctx: Context) => void): Promise<Response> {
  const app = new Koa()
  app.silent = true
  app.use(rateLimit({ limit: 9, window: '1h' }))
  app.use(handler)
  const handle = app.callback()
  const server = await serving(createServer((request, response) => void handle(request, response)))
  closing.push(() => server.close())
  return fetch(`http://127.0.0.1:${server.port}/`)
}

test('an error that is thrown carries the limit, beside its own fields', async () => {
  const { status, headers } = await answer((ctx) => ctx.throw(418, { headers: { 'X-Own': '1' } }))
  expect([status, headers.get('X-Own')]).toEqual([418, '1'])
  expect(headers.get('RateLimit')).toMatch(/;r=8;/)
  expect(headers.get('RateLimit-Policy')).toMatch(/;q=9;/)
})

test.each([
  ['an error that is frozen', Object.freeze(new Error('frozen'))],
  ['a text', 'text'],
])('%s is answered with 500', async (_, thrown) => {
  const { status } = await answer(() => {
    throw thrown
  })
  expect(status).toBe(500)
})

import { createServer } from 'node:http'
import fastifyRateLimit from '@fastify/rate-limit'
import { createAdaptorServer } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { rateLimit as forExpress } from 'catraca/express'
import { rateLimit as forFastify } from 'catraca/fastify'
import { rateLimit as forHono } from 'catraca/hono'
import { createGuard } from 'catraca/http'
import { rateLimit } from 'catraca/node'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { rateLimiter } from 'hono-rate-limiter'
import { report } from '../lib/load.mjs'

// Never reached, so that only the counting is measured.
const limit = 1_000_000_000
const ours = { limit, window: '1m' }
const rule = { algorithm: 'token-bucket', limit, window: '1m' }
const guard = () =>
  createGuard({
    policies: {
      version: 1,
      policies: {
        net: { per: 'address', rule },
        login: { match: { routes: ['POST /login'] }, per: 'address', rule },
        client: { match: { identity: 'client' }, per: 'client', rule },
        daily: { match: { identity: 'client' }, per: 'client', rule: { algorithm: 'quota', limit, period: 'day' } },
        service: { per: 'service', rule },
      },
    },
    identify: () => client,
  })
const client = { client: 'acme' }

const hello = (_request, response) => response.end('hello world')
// What a framework itself takes for a middleware that sends the two fields of a limit.
const fields = [
  ['RateLimit-Policy', `"default";q=${limit};w=60`],
  ['RateLimit', `"default";r=${limit - 1};t=60`],
]
const setFields = (response) => {
  for (const [name, value] of fields) response.setHeader(name, value)
}
const withFields = (request, response) => {
  setFields(response)
  hello(request, response)
}
const expressFields = (_request, response, next) => {
  setFields(response)
  next()
}
const fastifyFields = Object.assign(
  (app, _, done) => {
    app.addHook('onRequest', (_request, reply, go) => {
      for (const [name, value] of fields) reply.header(name, value)
      go()
    })
    done()
  },
  { [Symbol.for('skip-override')]: true },
)
const honoFields = (c, next) => {
  setFields(c.env.outgoing)
  return next()
}
const withExpress = (middleware) => {
  const app = express()
  if (middleware !== undefined) app.use(middleware)
  app.get('/', (_request, response) => response.send('hello world'))
  return createServer(app)
}
const withFastify = async (plugin, options) => {
  const app = fastify()
  if (plugin !== undefined) await app.register(plugin, options)
  app.get('/', (_request, reply) => void reply.send('hello world'))
  await app.ready()
  return app.server
}
const withHono = (middleware) => {
  const app = new Hono()
  if (middleware !== undefined) app.use(middleware)
  app.get('/', (c) => c.text('hello world'))
  return createAdaptorServer({ fetch: app.fetch })
}

const variants = {
  node: () => createServer(hello),
  'node fields alone': () => createServer(withFields),
  'node catraca': () => createServer(rateLimit(ours)(hello)),
  'node guard': () => createServer(rateLimit(guard())(hello)),
  express: () => withExpress(),
  'express fields alone': () => withExpress(expressFields),
  'express catraca': () => withExpress(forExpress(ours)),
  'express express-rate-limit': () =>
    withExpress(expressRateLimit({ limit, windowMs: 60_000, standardHeaders: 'draft-8', legacyHeaders: false })),
  fastify: () => withFastify(),
  'fastify fields alone': () => withFastify(fastifyFields),
  'fastify catraca': () => withFastify(forFastify(ours)),
  'fastify @fastify/rate-limit': () => withFastify(fastifyRateLimit, { max: limit, timeWindow: 60_000 }),
  hono: () => withHono(),
  'hono fields alone': () => withHono(honoFields),
  'hono catraca': () => withHono(forHono(ours)),
  'hono hono-rate-limiter': () =>
    withHono(
      rateLimiter({
        limit,
        windowMs: 60_000,
        standardHeaders: 'draft-7',
        keyGenerator: (c) => getConnInfo(c).remote.address ?? '',
      }),
    ),
}

const server = await variants[process.argv[2]]()
server.listen(0, '127.0.0.1', () => report(server.address().port))

import { createServer } from 'node:http'
import { rateLimit as ours } from 'catraca/express'
import { createGuard } from 'catraca/http'
import { rateLimit } from 'catraca/node'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import { report } from '../lib/load.mjs'

// Never reached, so that only the counting is measured.
const limit = 1_000_000_000
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
const withExpress = (middleware) => {
  const app = express()
  if (middleware !== undefined) app.use(middleware)
  app.get('/', (_request, response) => response.send('hello world'))
  return app
}

const variants = {
  node: () => hello,
  'node catraca': () => rateLimit({ limit, window: '1m' })(hello),
  'node guard': () => rateLimit(guard())(hello),
  express: () => withExpress(),
  'express catraca': () => withExpress(ours({ limit, window: '1m' })),
  'express express-rate-limit': () =>
    withExpress(expressRateLimit({ limit, windowMs: 60_000, standardHeaders: 'draft-8', legacyHeaders: false })),
}

const server = createServer(variants[process.argv[2]]())
server.listen(0, '127.0.0.1', () => report(server.address().port))

import { Agent, createServer } from 'node:http'
import { report } from '../lib/load.mjs'

const [, , variant, upstream] = process.argv

if (variant === 'http-proxy') {
  const { default: httpProxy } = await import('http-proxy')
  const proxy = httpProxy.createProxyServer({ target: upstream, agent: new Agent({ keepAlive: true }), xfwd: true })
  const server = createServer((request, response) => proxy.web(request, response))
  server.listen(0, '127.0.0.1', () => report(server.address().port))
} else {
  const { createGateway } = await import('../../packages/gateway/dist/index.js')
  // Never reached, so that every request goes all the way.
  const rule = { algorithm: 'token-bucket', limit: 1_000_000_000, window: '1m' }
  const gateway = createGateway({
    document: {
      version: 1,
      trust: { proxies: 0 },
      ...(variant === 'catraca without limits' && { exempt: { routes: ['/**'] } }),
      policies: {
        net: { per: 'address', rule },
        login: { match: { routes: ['POST **/login'] }, per: 'address', rule },
        service: { per: 'service', rule },
      },
      upstreams: { app: upstream },
    },
  })
  report(await gateway.listen({ port: 0, host: '127.0.0.1' }))
}

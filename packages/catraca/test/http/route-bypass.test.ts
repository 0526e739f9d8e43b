import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import type * as Path from '../../src/policy/path.ts'
import type * as RouteModule from '../../src/policy/route.ts'
import type * as Bypass from '../../src/testing/route-bypass.ts'

/** A literal path into another project is an error of the compiler. */
const [pathFile, routeFile, bypassFile] = ['policy/path', 'policy/route', 'testing/route-bypass'].map(
  (file) => new URL(`../../src/${file}.ts`, import.meta.url).href,
) as [string, string, string]
const { normalPath } = (await import(pathFile)) as typeof Path
const { parseRoute } = (await import(routeFile)) as typeof RouteModule
const { bypassVectors, routeBypassSuite } = (await import(bypassFile)) as typeof Bypass

/** How a kind of server finds the path it routes by, as a regular expression is matched against it. */
const routers: Record<string, (target: string) => string> = {
  'takes the target up to the query': (target) => target.split('?')[0] ?? '',
  'takes it up to query or fragment, as Express does': (target) =>
    (target.startsWith('/') ? target : new URL(target, 'http://x').pathname).split(/[?#]/)[0] ?? '',
  'ends it at a semicolon and cuts the host off, as Fastify 4 did': (target) =>
    target.replace(/^https?:\/\/.*?\//i, '/').split(/[?;#]/)[0] ?? '',
  'parses it by the URL standard': (target) => new URL(target, 'http://x').pathname,
  'parses it by the URL standard and decodes': (target) => decoded(new URL(target, 'http://x').pathname),
  'decodes, merges and resolves': (target) => {
    const segments: string[] = []
    for (const segment of decoded(target.split(/[?#]/)[0] ?? '').split(/[/\\]+/)) {
      if (segment === '..') segments.pop()
      else if (segment !== '' && segment !== '.') segments.push(segment)
    }
    return `/${segments.join('/')}`
  },
  'resolves and then decodes, with empty parameters': (target) =>
    decoded(new URL(`http://x${target.replace(/^\/+/, '/')}`).pathname),
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** A limiter of one request per hour and route: true when a request may pass. */
type Gate = (method: string, target: string) => boolean

function byRoutes(): Gate {
  const routes = ['POST /login', 'GET /reports/:id/export'].map((text) => ({
    route: parseRoute(text, 'routes[0]'),
    used: false,
  }))
  return (method, target) => {
    const hit = routes.find(({ route }) => route.matches(method, normalPath(target)))
    if (hit === undefined) return true
    if (hit.used) return false
    hit.used = true
    return true
  }
}

/** What not to do: compare targets as they came. */
function byTargets(): Gate {
  const used = new Set<string>()
  return (method, target) => {
    const request = `${method} ${target}`
    if (request !== 'POST /login' && request !== 'GET /reports/a/export') return true
    if (used.has(request)) return false
    used.add(request)
    return true
  }
}

async function start(router: (target: string) => string, gate: Gate): Promise<Bypass.BypassApp> {
  let reached = 0
  const server = createServer((incoming, outgoing) => {
    const { method = '', url = '' } = incoming
    const handler = handlerOf(router, method, url)
    outgoing.statusCode = handler ? 200 : 404
    if (!gate(method, url)) outgoing.statusCode = 429
    else if (handler) reached++
    outgoing.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    send: (method, path) =>
      new Promise((resolve, reject) => {
        const sent = request({ port, host: '127.0.0.1', method, path, agent: false }, (answer: IncomingMessage) => {
          answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
        })
        sent.on('error', reject).end()
      }),
    reached: () => reached,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

function handlerOf(router: (target: string) => string, method: string, target: string): boolean {
  let path: string
  try {
    path = router(target).toLowerCase()
  } catch {
    return false
  }
  if (/^\/login\/?$/.test(path)) return method === 'POST'
  return /^\/reports\/(?:.*)\/export\/?$/s.test(path) && (method === 'GET' || method === 'HEAD')
}

/** Runs the suite against an application; gives the names of the vectors it found a way around with. */
async function found(app: () => Promise<Bypass.BypassApp>): Promise<string[]> {
  const names: string[] = []
  const runs: (() => Promise<void>)[] = []
  routeBypassSuite((_, run) => runs.push(run), app)
  for (const [index, run] of runs.entries()) {
    try {
      await run()
    } catch (error) {
      names.push(`${bypassVectors[index]?.name}: ${(error as Error).message}`)
    }
  }
  return names
}

describe('routes', () => {
  test.each(Object.keys(routers))('no spelling gets around a route in front of a server that %s', async (name) => {
    expect(await found(() => start(routers[name] as (target: string) => string, byRoutes()))).toEqual([])
  })
})

describe('the suite', () => {
  test('has at least 20 vectors, each under its own name and with its own target', () => {
    expect(bypassVectors.length).toBeGreaterThanOrEqual(20)
    expect(new Set(bypassVectors.map(({ name }) => name)).size).toBe(bypassVectors.length)
    expect(new Set(bypassVectors.map(({ method, target }) => `${method} ${target}`)).size).toBe(bypassVectors.length)
  })

  test.each(Object.keys(routers))(
    'finds the ways around a comparison of targets in front of a server that %s',
    async (name) => {
      const ways = await found(() => start(routers[name] as (target: string) => string, byTargets()))
      expect(ways.length).toBeGreaterThan(5)
      expect(ways).toContainEqual(
        'upper case: POST /LOGIN reached the handler past the limit of POST /login; it was answered 200',
      )
    },
  )

  test('is made of spellings that some server takes for a route, and of some that look as if one did', async () => {
    const ways = new Set<string>()
    for (const router of Object.values(routers)) {
      for (const way of await found(() => start(router, byTargets()))) ways.add(way.split(':')[0] as string)
    }
    expect(bypassVectors.map(({ name }) => name).filter((name) => !ways.has(name))).toEqual([
      'backslash in front',
      'encoded twice',
      'encoded semicolon',
      'NUL at the end',
      'blank at the end',
      'overlong slash',
      'full-width letters',
      'percent without digits',
    ])
  })

  test('fails for an application without limits, or without handlers', async () => {
    const open = await found(() =>
      start(routers['parses it by the URL standard'] as (target: string) => string, () => true),
    )
    expect(open).toHaveLength(bypassVectors.length)
    expect(open[0]).toContain('is not limited: the second request reached its handler too')
    const closed = await found(() =>
      start(
        () => '/',
        () => true,
      ),
    )
    expect(closed[0]).toContain('POST /login reached its handler 0 times, not once')
  })
})

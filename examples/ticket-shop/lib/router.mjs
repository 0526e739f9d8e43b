import { Refusal } from './answers.mjs'

/**
 * @typedef {object} Call
 * @property {import('node:http').IncomingMessage} request
 * @property {import('node:http').ServerResponse} response
 * @property {Record<string, string>} params The parts of the path that a route names, as they were sent.
 * @property {URLSearchParams} query
 */

/** @typedef {(call: Call) => unknown} Handler */

/**
 * Finds handlers by routes such as `GET /events/:id`. Paths are compared as they were sent, undecoded: what the edge
 * took for another path must not reach a handler here. GET answers HEAD too.
 * @param {Record<string, Handler>} routes
 */
export function createRouter(routes) {
  const table = Object.entries(routes).map(([route, handler]) => {
    const [method, path] = route.split(' ')
    return { method, pattern: new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`), handler }
  })
  const known = Object.keys(routes).join(', ')

  /**
   * @param {string} method
   * @param {string} path
   */
  return function find(method, path) {
    const asked = method === 'HEAD' ? 'GET' : method
    const allowed = []
    for (const { method, pattern, handler } of table) {
      const match = pattern.exec(path)
      if (match === null) continue
      if (method === asked) return { handler, params: { ...match.groups } }
      allowed.push(method)
    }
    if (allowed.length === 0) throw new Refusal(404, `There is ${known}.`)
    const allow = allowed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    throw new Refusal(405, `Allowed here: ${allow}.`, { Allow: allow })
  }
}

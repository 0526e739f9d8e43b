import { createServer } from 'node:http'
import { Refusal, sendJson, sendProblem } from './answers.mjs'
import { Connections } from './connections.mjs'
import { createRouter } from './router.mjs'

/** Longer than an edge keeps its connections, so that it is the edge that closes an idle one. */
const keepAliveTimeout = 75_000
/** How long running answers may take once the service is asked to end. */
const graceMs = 900

/**
 * Runs a service on PORT until it is asked to end.
 * @param {string} name
 * @param {Record<string, import('./router.mjs').Handler>} routes
 */
export function serve(name, routes) {
  const find = createRouter({ ...routes, 'GET /health': health })
  const server = createServer({ keepAliveTimeout }, (request, response) => void answer(request, response))
  const connections = new Connections(server)
  let stopping = false

  function health({ response }) {
    sendJson(response, 200, { status: 'ok', service: name })
  }

  async function answer(request, response) {
    connections.track(request, response)
    try {
      const [path, ...query] = request.url.split('?')
      const { handler, params } = find(request.method, path)
      await handler({ request, response, params, query: new URLSearchParams(query.join('?')) })
    } catch (error) {
      fail(request, response, error)
    }
  }

  function stop() {
    if (stopping) return
    stopping = true
    server.close()
    connections.close()
    setTimeout(() => process.exit(), graceMs).unref()
    if (process.connected) process.disconnect()
  }

  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  // The process that started this one is gone; it may have gone before this one listened.
  process.once('disconnect', stop)
  if (process.send !== undefined && !process.connected) process.exit()
  // What reads the output may have gone as well.
  process.stdout.on('error', ignore)
  process.stderr.on('error', ignore)

  listen(server, name)
}

/** Answers for a handler that threw. */
function fail(request, response, error) {
  // The caller has gone: nobody is left to answer, and nothing is wrong here.
  if (response.destroyed || request.socket.destroyed) return
  if (!(error instanceof Refusal)) process.stderr.write(`error: ${error?.stack ?? error}\n`)
  if (response.headersSent) response.destroy()
  else sendProblem(response, error instanceof Refusal ? error : new Refusal(500, 'Something broke here.'))
}

/** Listens on PORT, 0 or nothing for a free one, and says where: to the process that started it, or on the terminal. */
function listen(server, name) {
  const port = process.env.PORT || '0'
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) die(`PORT is "${port}"; allowed: 0 to 65535`)
  server.on('error', (error) => die(`${name} cannot listen on port ${port} (${error.code})`))
  server.listen(Number(port), '127.0.0.1', () => {
    const url = `http://127.0.0.1:${server.address().port}`
    if (process.connected) process.send({ ready: url }, ignore)
    else if (process.send === undefined) process.stdout.write(`${name} listens on ${url}\n`)
  })
}

function die(message) {
  process.stderr.write(`error: ${message}\n`)
  process.exit(1)
}

function ignore() {}

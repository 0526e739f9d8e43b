import { createServer } from 'node:http'
import { events } from './events.mjs'

const pageSize = 20
const pages = Math.ceil(events.length / pageSize)

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(`http://catalog/${request.url?.slice(1) ?? ''}`)
  const id = /^\/events\/(\d+)$/.exec(pathname)?.[1]
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    problem(response, 405, 'Only GET and HEAD are answered here.', { Allow: 'GET, HEAD' })
  } else if (pathname === '/events') list(response, searchParams.get('page') ?? '1')
  else if (id !== undefined) one(response, Number(id))
  else problem(response, 404, 'There is /events, a list in pages, and /events/1 to /events/200.')
})

/** One page of events, with the way to the next. */
function list(response, text) {
  const page = Number(text)
  if (!Number.isInteger(page) || page < 1 || page > pages) {
    problem(response, 400, `There are pages 1 to ${pages}.`)
    return
  }
  const next = page < pages ? `/events?page=${page + 1}` : null
  const items = events.slice((page - 1) * pageSize, page * pageSize)
  send(response, 200, 'application/json', { page, pages, total: events.length, next, items })
}

function one(response, id) {
  const event = events[id - 1]
  if (event === undefined) problem(response, 404, `There is no event ${id}; there are events 1 to ${events.length}.`)
  else send(response, 200, 'application/json', event)
}

function problem(response, status, detail, headers = {}) {
  const titles = { 400: 'Bad Request', 404: 'Not Found', 405: 'Method Not Allowed' }
  const body = { type: 'about:blank', title: titles[status], status, detail }
  send(response, status, 'application/problem+json', body, headers)
}

function send(response, status, type, body, headers = {}) {
  const text = `${JSON.stringify(body)}\n`
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text), ...headers })
  response.end(text)
}

function stop() {
  server.close()
  server.closeIdleConnections()
  if (process.connected) process.disconnect()
}

process.once('SIGINT', stop)
process.once('SIGTERM', stop)
// The process that started this one is gone; it may have gone before this one listened.
process.once('disconnect', stop)
if (process.send !== undefined && !process.connected) process.exit()

server.on('error', (error) => {
  process.stderr.write(`error: the catalog cannot listen (${error.code})\n`)
  process.exit(1)
})
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`
  process.stdout.write(`catalog listens on ${url}\n`)
  if (process.connected) process.send({ ready: url })
})

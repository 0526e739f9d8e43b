import { createServer } from 'node:http'
import { report } from '../lib/load.mjs'

const body = JSON.stringify({ id: 7, title: 'Jazz night under the stars', city: 'Recife', seats: 100 })
const head = ['Content-Type', 'application/json', 'Content-Length', String(body.length)]
const server = createServer((_request, response) => {
  response.writeHead(200, head)
  response.end(body)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => report(server.address().port))

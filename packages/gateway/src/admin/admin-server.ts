import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * Liveness and readiness, on a port of their own: `GET /livez` is 200 while the process answers, `GET /readyz` is 200
 * while it takes requests and 503 from the moment it is asked to stop. It is ready while a shared store is gone too:
 * requests are served. `GET /health` has the status of `/readyz` and says in JSON how the store is.
 */
export class AdminServer {
  /** Where it listens; undefined while it does not. */
  port: number | undefined
  private readonly server

  constructor(ready: () => boolean, store: () => object) {
    this.server = createServer((request, response) => {
      const path = request.url?.replace(/\?.*$/s, '')
      const status = ready() ? 200 : 503
      const words = status === 200 ? 'ok' : 'stopping'
      if (path === '/livez') answer(response, 200, 'ok')
      else if (path === '/readyz') answer(response, status, words)
      else if (path === '/health')
        answer(response, status, JSON.stringify({ status: words, store: store() }), 'application/json')
      else answer(response, 404, 'not found')
    })
  }

  async listen(port: number, host: string): Promise<void> {
    this.server.listen(port, host)
    await once(this.server, 'listening')
    this.port = (this.server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    if (this.port === undefined) return
    this.port = undefined
    this.server.close()
    this.server.closeAllConnections()
    await once(this.server, 'close')
  }
}

function answer(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' })
  response.end(`${text}\n`)
}

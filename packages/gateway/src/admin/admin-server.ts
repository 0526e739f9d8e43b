import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * Liveness and readiness, on a port of their own: `GET /livez` is 200 while the process answers, `GET /readyz` is 200
 * while it takes requests and 503 from the moment it is asked to stop.
 */
export class AdminServer {
  /** Where it listens; undefined while it does not. */
  port: number | undefined
  private readonly server

  constructor(ready: () => boolean) {
    this.server = createServer((request, response) => {
      const path = request.url?.replace(/\?.*$/s, '')
      const known = path === '/livez' || path === '/readyz'
      const good = path === '/livez' || ready()
      const status = !known ? 404 : good ? 200 : 503
      response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' })
      response.end(`${!known ? 'not found' : good ? 'ok' : 'stopping'}\n`)
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

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { EdgeRequest, EdgeResponse } from './messages.ts'

/** Idle connections are kept longer than the minute that load balancers keep theirs, so that it is they who close. */
const keepAliveMs = 65_000
const headersMs = 20_000
const noTunnel = 'HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

/** The HTTP/1.1 server in front. It knows how to listen and how to stop, and nothing of limits or upstreams. */
export class EdgeServer {
  private readonly server: Server<typeof EdgeRequest, typeof EdgeResponse>
  private readonly warn: (line: string) => void
  private stopped: Promise<void> | undefined

  /**
   * @param answer Called for every request, also for one that asks for `100 Continue` first.
   * @param warn Called with a line when a connection cannot be taken, such as when the system has no more files.
   * @param idleMs A connection on which nothing moves for this long in the middle of a request is closed.
   */
  constructor(
    answer: (request: EdgeRequest, response: EdgeResponse) => void,
    warn: (line: string) => void,
    idleMs: number,
  ) {
    this.warn = warn
    this.server = createServer({
      IncomingMessage: EdgeRequest,
      ServerResponse: EdgeResponse,
      keepAliveTimeout: keepAliveMs,
      headersTimeout: headersMs,
      // A long upload is no fault; one that stands still is ended by the idle time.
      requestTimeout: 0,
    })
    this.server.timeout = idleMs
    this.server.on('request', answer)
    this.server.on('checkContinue', answer)
    this.server.on('connect', refuseTunnel)
  }

  /** True from the moment {@link EdgeServer.close} is called. */
  get closing(): boolean {
    return this.stopped !== undefined
  }

  /** True once it listens. */
  get listening(): boolean {
    return this.server.listening
  }

  /** Listens; gives the port. Rejects with the system's error, such as code `EADDRINUSE`. */
  listen(port: number, host: string | undefined): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen({ port, host }, () => {
        this.server.off('error', reject)
        this.server.on('error', (error) => this.warn(`a connection was not taken: ${error.message}`))
        resolve((this.server.address() as AddressInfo).port)
      })
    })
  }

  /** Takes no more connections, lets running requests end, and after `graceMs` cuts those that have not. */
  close(graceMs: number): Promise<void> {
    this.stopped ??= new Promise((resolve) => {
      const cut = setTimeout(() => this.server.closeAllConnections(), graceMs)
      this.server.close(() => {
        clearTimeout(cut)
        resolve()
      })
    })
    return this.stopped
  }

  /** Ends connections that became idle after {@link EdgeServer.close} was called. */
  closeIdle(): void {
    this.server.closeIdleConnections()
  }
}

function refuseTunnel(_request: EdgeRequest, socket: Duplex): void {
  socket.on('error', () => socket.destroy())
  socket.end(noTunnel, () => socket.destroy())
}

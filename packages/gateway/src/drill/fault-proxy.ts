import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/**
 * What a {@link FaultProxy} does with bytes and connections:
 * - `pass`: hands all on at once.
 * - `{ delayMs }`: hands each chunk on that many milliseconds later, in both directions and in order.
 * - `blackhole`: takes connections and bytes and drops the bytes; connections stay open, ends are not passed on either.
 *   At the next other mode the connections that lost something are reset.
 * - `reset`: connections get a TCP reset, new ones too.
 * - `refuse`: connections get a TCP reset, and nothing listens: new ones are refused.
 */
export type FaultMode = 'pass' | 'blackhole' | 'reset' | 'refuse' | { readonly delayMs: number }

/** Closes both sides, the client's with a TCP reset. */
type Reset = () => void

/**
 * A TCP proxy on 127.0.0.1 that fails when it is told to. Keeps what a slow reader has not taken in memory, without a
 * bound.
 */
export class FaultProxy {
  readonly port: number
  private readonly targetPort: number
  private readonly host: string
  private current: FaultMode = 'pass'
  private server: Server | undefined
  private readonly links = new Set<Reset>()
  private readonly lossy = new Set<Reset>()

  private constructor(server: Server, port: number, targetPort: number, host: string) {
    this.port = port
    this.targetPort = targetPort
    this.host = host
    this.adopt(server)
  }

  /** Listens on a free port; what comes goes to `targetPort` of `host` (default 127.0.0.1). Starts as `pass`. */
  static async start(targetPort: number, host = '127.0.0.1'): Promise<FaultProxy> {
    for (let attempt = 1; ; attempt++) {
      const port = randomPort()
      try {
        return new FaultProxy(await listen(port), port, targetPort, host)
      } catch (error) {
        if (!isTaken(error) || attempt === 20) throw error
      }
    }
  }

  get mode(): FaultMode {
    return this.current
  }

  /** `redis://127.0.0.1:<port>`. */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Connections of clients that are open now. */
  get connections(): number {
    return this.links.size
  }

  /** Resolves when the mode is in force. Rejects if, after `refuse`, another program has taken the port. */
  async set(mode: FaultMode): Promise<void> {
    this.current = mode
    if (mode === 'reset' || mode === 'refuse') for (const reset of this.links) reset()
    if (mode !== 'blackhole') for (const reset of this.lossy) reset()
    if (mode === 'refuse') return this.unlisten()
    if (this.server === undefined) this.adopt(await listen(this.port))
  }

  /** Stops listening and resets all connections. May be called again. */
  async close(): Promise<void> {
    await this.set('refuse')
  }

  private adopt(server: Server): void {
    this.server = server
    server.on('connection', (client) => this.link(client))
  }

  private async unlisten(): Promise<void> {
    const { server } = this
    if (server === undefined) return
    this.server = undefined
    server.close()
    await once(server, 'close')
  }

  private link(client: Socket): void {
    if (this.current === 'reset' || this.current === 'refuse') {
      client.resetAndDestroy()
      return
    }
    const target = connect({ port: this.targetPort, host: this.host, allowHalfOpen: true })
    const reset: Reset = () => {
      this.links.delete(reset)
      this.lossy.delete(reset)
      client.resetAndDestroy()
      target.destroy()
    }
    this.links.add(reset)
    this.pump(client, target, reset)
    this.pump(target, client, reset)
    client.on('close', () => this.links.delete(reset))
  }

  private pump(from: Socket, to: Socket, reset: Reset): void {
    /** Settles when all that came before is handed on. */
    let tail: Promise<void> | undefined
    const handOn = (act: () => void): void => {
      const { current } = this
      const waitMs = typeof current === 'object' ? current.delayMs : 0
      if (waitMs === 0 && tail === undefined) return this.unlessLost(act, reset)
      const before = tail
      const due = new Promise<void>((resolve) => setTimeout(resolve, waitMs).unref())
      const mine: Promise<void> = due
        .then(() => before)
        .then(() => {
          if (tail === mine) tail = undefined
          this.unlessLost(act, reset)
        })
      tail = mine
    }
    from.setNoDelay(true)
    from.on('data', (chunk: Buffer) => handOn(() => to.writable && to.write(chunk)))
    from.on('end', () => handOn(() => to.end()))
    from.on('error', () => handOn(reset))
    from.on('close', () => handOn(() => to.end()))
  }

  private unlessLost(act: () => void, reset: Reset): void {
    if (this.current === 'blackhole') this.lossy.add(reset)
    else if (!this.lossy.has(reset)) act()
  }
}

/**
 * A port for a server that goes away and comes back: below those that systems give to outgoing connections, so that no
 * client of the absent server takes it, or connects to itself. Another program may have it.
 */
export function randomPort(): number {
  return 10_000 + Math.floor(Math.random() * 6_000)
}

async function listen(port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function isTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
}

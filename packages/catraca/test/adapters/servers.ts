import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { rateLimit as expressLimit, type MountOptions, type NodeRequest, type RateLimitOptions } from 'catraca/express'
import type { AnyGuard } from 'catraca/http'
import { rateLimit as nodeLimit } from 'catraca/node'
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express'

/** What both kinds of servers hand over. */
export type Incoming = IncomingMessage & NodeRequest
type Limit = RateLimitOptions<Incoming> | AnyGuard<Incoming>

/** A server under test: its handler, the limits before it from the outermost, and where errors go. */
export interface Setup {
  limits: readonly { what: Limit; mount?: MountOptions<Incoming> }[]
  /** Default: answers 200 with `ok`. */
  handler?: (request: Incoming, response: ServerResponse) => void
  /** Parses JSON bodies before the limits, where the framework can. */
  json?: boolean
}

export interface Running {
  readonly port: number
  /** Path under which the handler is found. */
  readonly base: string
  /** Calls of the handler. */
  reached(): number
  readonly errors: unknown[]
  close(): Promise<void>
}

export type Kind = 'node:http' | 'Express' | 'Express router'
export const kinds: readonly Kind[] = ['node:http', 'Express', 'Express router']

/** Starts a server of a kind. Both kinds answer an error with 500. */
export async function start(kind: Kind, setup: Setup): Promise<Running> {
  const errors: unknown[] = []
  const base = kind === 'Express router' ? '/sub' : ''
  let reached = 0
  const handler = (request: Incoming, response: ServerResponse) => {
    reached++
    if (setup.handler !== undefined) setup.handler(request, response)
    else response.end('ok')
  }
  const listener = kind === 'node:http' ? plain(setup, handler, errors) : framework(setup, handler, errors, base)
  const server = await listening(createServer(listener))
  const { port } = server.address() as AddressInfo
  return { port, base, reached: () => reached, errors, close: () => closed(server) }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

function plain({ limits }: Setup, handler: Listener, errors: unknown[]): Listener {
  let listener = handler
  for (const { what, mount } of limits.toReversed()) {
    listener = nodeLimit<Incoming>(what, { ...mount, onError: (error) => errors.push(error) })(listener)
  }
  return listener
}

function framework({ limits, json }: Setup, handler: Listener, errors: unknown[], base: string): Listener {
  const app = express()
  const routes = base === '' ? app : express.Router()
  if (json === true) routes.use(express.json())
  for (const { what, mount } of limits) routes.use(expressLimit<Incoming>(what, mount) as RequestHandler)
  routes.use(handler as RequestHandler)
  if (base !== '') app.use(base, routes)
  app.use((error: unknown, _: Request, response: Response, next: NextFunction) => {
    errors.push(error)
    if (response.headersSent) next(error)
    else response.status(500).end()
  })
  return app
}

export async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

export async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise<void>((resolve) => server.close(() => resolve()))
}

/** An answer as it came over the connection. */
export interface Received {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** One connection; sends bytes as they are and reads answers one by one. */
export class Wire {
  readonly socket: Socket
  private text = ''
  private ended: Error | undefined
  private wake: () => void = () => {}

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.setEncoding('latin1')
    this.socket.on('data', (part: string) => {
      this.text += part
      this.wake()
    })
    this.socket.on('error', (error) => this.end(error))
    this.socket.on('close', () => this.end(new Error('the connection was closed')))
  }

  send(
    method: string,
    target: string,
    { body = '', headers = {} }: { body?: string; headers?: Record<string, string> } = {},
  ): void {
    const lines = Object.entries({
      Host: 'localhost',
      ...(body !== '' && { 'Content-Length': body.length }),
      ...headers,
    })
    this.socket.write(
      `${method} ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
    )
  }

  /** The next answer; throws when the connection ends before. */
  async receive(method = 'GET'): Promise<Received> {
    const head = await this.take((text) => (text.includes('\r\n\r\n') ? text.indexOf('\r\n\r\n') + 4 : -1))
    const [first = '', ...lines] = head.trim().split('\r\n')
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const [name = '', ...value] = line.split(':')
      headers[name.toLowerCase()] = value.join(':').trim()
    }
    let body = ''
    if (method !== 'HEAD') {
      const length = headers['content-length']
      if (length !== undefined) body = await this.take((text) => (text.length >= Number(length) ? Number(length) : -1))
      else if (headers['transfer-encoding'] === 'chunked') body = await this.chunks()
    }
    return { status: Number(first.split(' ')[1]), headers, body }
  }

  /** True once the other end has closed the connection. */
  async over(): Promise<boolean> {
    while (this.ended === undefined) await this.more()
    return true
  }

  close(): void {
    this.socket.destroy()
  }

  private async chunks(): Promise<string> {
    let body = ''
    for (;;) {
      const size = await this.take((text) => (text.includes('\r\n') ? text.indexOf('\r\n') + 2 : -1))
      const length = Number.parseInt(size, 16)
      const chunk = await this.take((text) => (text.length >= length + 2 ? length + 2 : -1))
      if (length === 0) return body
      body += chunk.slice(0, -2)
    }
  }

  private async take(end: (text: string) => number): Promise<string> {
    let at = end(this.text)
    while (at < 0) {
      if (this.ended !== undefined) throw this.ended
      await this.more()
      at = end(this.text)
    }
    const part = this.text.slice(0, at)
    this.text = this.text.slice(at)
    return part
  }

  private more(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }

  private end(error: Error): void {
    this.ended ??= error
    this.wake()
  }
}

/** One request over a connection of its own, its target sent byte for byte. */
export async function send(
  { port }: Pick<Running, 'port'>,
  method: string,
  target: string,
  rest?: { body?: string; headers?: Record<string, string> },
): Promise<Received> {
  const wire = new Wire(port)
  wire.send(method, target, rest)
  try {
    return await wire.receive(method)
  } finally {
    wire.close()
  }
}

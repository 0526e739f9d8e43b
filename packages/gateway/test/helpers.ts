import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  request,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { createGateway, type Gateway, type GatewayOptions } from '@catraca/gateway'
import { onTestFinished } from 'vitest'

export interface Upstream {
  readonly origin: string
  /** Requests seen, oldest first. */
  readonly seen: IncomingMessage[]
}

/** Starts an HTTP service that ends with the test. Default: answers 200 with `ok`. */
export async function startUpstream(
  answer: (request: IncomingMessage, response: ServerResponse) => unknown = (_, response) => response.end('ok'),
): Promise<Upstream> {
  const seen: IncomingMessage[] = []
  const server = createServer((incoming, response) => {
    seen.push(incoming)
    answer(incoming, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

/** Starts a TCP service that ends with the test, for answers no HTTP server gives. */
export async function startTcp(accept: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    accept(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** An origin where nothing listens. */
export async function deadOrigin(): Promise<string> {
  const server = createTcpServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

export interface Running {
  readonly gateway: Gateway
  readonly port: number
  readonly url: string
  readonly warnings: string[]
}

/** Starts a gateway that ends with the test. The limit is never reached unless it is given. */
export async function startGateway(upstream: string, options: Partial<GatewayOptions> = {}): Promise<Running> {
  const warnings: string[] = []
  const onWarning = (line: string): void => void warnings.push(line)
  const gateway = createGateway({ upstream, limit: 1_000_000, window: '1s', burst: 1_000_000, onWarning, ...options })
  const port = await gateway.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => gateway.close(0))
  return { gateway, port, url: `http://127.0.0.1:${port}`, warnings }
}

export interface Answer {
  readonly status: number
  readonly phrase: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: string[]
  readonly body: Buffer
}

/** One request on a connection of its own. */
export async function ask(
  url: string,
  { body, ...options }: RequestOptions & { body?: string | Buffer } = {},
): Promise<Answer> {
  const outgoing = request(url, { agent: false, ...options })
  outgoing.end(body)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  return {
    status: incoming.statusCode ?? 0,
    phrase: incoming.statusMessage ?? '',
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    body: await readAll(incoming),
  }
}

export async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Sends bytes as they are and gives all that comes back until the other side closes. */
export async function sendRaw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(text, 'latin1')
  return (await readAll(socket)).toString('latin1')
}

/** Resolves when `condition` holds; gives up after ten seconds. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`still waiting for: ${condition.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { AppAnswer, AppRoute, RunningApp } from 'catraca/testing'

export const dial = (port: number) => connect(port, '127.0.0.1')

/** Makes a server listen on a free port of 127.0.0.1. */
export async function serving(server: Server, close: () => Promise<unknown> = async () => {}): Promise<RunningApp> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return running(server, close)
}

export function running(server: Server, close: () => Promise<unknown> = async () => {}): RunningApp {
  return {
    port: (server.address() as AddressInfo).port,
    connections: () =>
      new Promise((resolve, reject) => {
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
      }),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await close()
    },
  }
}

/** Sends an answer by the means of Node. */
export async function send(
  response: ServerResponse,
  { status = 200, headers = {}, body = '' }: AppAnswer,
): Promise<void> {
  response.writeHead(status, headers)
  if (typeof body === 'string') {
    response.end(body)
    return
  }
  try {
    for await (const part of body) {
      if (response.destroyed) return
      response.write(part)
    }
    response.end()
  } catch {
    response.destroy()
  }
}

/**
 * The route that the most generous of servers takes a target for: it resolves and decodes the path, and takes any case. For
 * servers that have no router of their own.
 */
export function routeOf(routes: readonly AppRoute[], method: string, target: string): AppRoute | undefined {
  let path: string
  try {
    path = decodeURIComponent(new URL(target, 'http://localhost').pathname)
      .toLowerCase()
      .replace(/(?<=.)\/+$/, '')
  } catch {
    return undefined
  }
  const asked = method === 'HEAD' ? 'GET' : method
  return routes.find((route) => {
    const pattern = new RegExp(`^${route.path.replace(/:\w+/g, '.*')}$`, 's')
    return route.method === asked && pattern.test(path)
  })
}

/** The whole body of a request as JSON; rejects when it is none. */
export async function jsonOf(request: IncomingMessage): Promise<unknown> {
  let text = ''
  request.setEncoding('utf8')
  for await (const part of request) text += part as string
  return JSON.parse(text)
}

export const isJson = (request: IncomingMessage): boolean => request.headers['content-type'] === 'application/json'

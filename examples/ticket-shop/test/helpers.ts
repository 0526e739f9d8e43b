import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

export const services = ['catalog', 'inventory', 'order', 'assistant', 'reports', 'partner'] as const
export type ServiceName = (typeof services)[number]

export interface Service {
  readonly child: ChildProcess
  readonly url: string
  /** All that it printed so far. */
  readonly printed: () => string
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>
}

/** Starts a service on a free port. */
export async function start(name: ServiceName): Promise<Service> {
  const child = fork(fileURLToPath(new URL(`../services/${name}.mjs`, import.meta.url)), {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  let printed = ''
  child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const [message] = (await once(child, 'message')) as [{ ready: string }]
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
    // After its output has ended as well.
    const ended = once(child, 'close')
    child.kill(signal)
    await ended
    return child.exitCode
  }
  return { child, url: message.ready, printed: () => printed, stop }
}

export interface Answer {
  readonly status: number
  readonly type: string | null
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

/** Asks and reads the answer as JSON; a body is sent as JSON, or as it is when it is a text. */
export async function ask(url: string, method = 'GET', body?: unknown): Promise<Answer> {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(url, { method, ...(text !== undefined && { body: text }) })
  const answer = await response.text()
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    headers: response.headers,
    body: answer === '' ? {} : (JSON.parse(answer) as Record<string, unknown>),
  }
}

/** Expects a problem document of that status. */
export function expectProblem({ status, type, body }: Answer, expected: number): void {
  expect({ status, type, inBody: body['status'] }).toEqual({
    status: expected,
    type: 'application/problem+json',
    inBody: expected,
  })
  expect(body['detail']).toEqual(expect.any(String))
}

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, createServer, type IncomingHttpHeaders, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JobsEntry } from '@catraca/config'
import { createGateway } from '@catraca/gateway'
import { rateLimit as forExpress } from 'catraca/express'
import { rateLimit as forFastify } from 'catraca/fastify'
import { type Counts, createGuard, type GuardOptions, memoryJobs } from 'catraca/http'
import type { PolicyDocument } from 'catraca/policy'
import express from 'express'
import { fastify } from 'fastify'
import { onTestFinished, vi } from 'vitest'

export const kinds = ['Express', 'Fastify', 'the edge'] as const
export type Kind = (typeof kinds)[number]

/** What a handler sees of a request. */
export interface Call {
  readonly method: string
  readonly path: string
  /** The request header `catraca-answer`. */
  readonly told: string | undefined
  readonly client: string | undefined
  readonly body: unknown
}

/** What a handler answers. */
export interface Reply {
  status?: number
  headers?: Record<string, string>
  body?: string
  /** Answers only then. */
  after?: Promise<unknown>
}

/** Who a key belongs to. */
export interface Holder {
  client: string
  plan?: string
  tenant?: string
}

export interface AppOptions {
  policies: PolicyDocument
  /** By the header x-api-key. A key that is none is refused with 401 by the application, or by the edge. */
  keys?: Record<string, Holder>
  /** Default: 200 with `ok`. */
  handler?: (call: Call) => Reply
  answers?: Pick<GuardOptions, 'headers' | 'cacheable' | 'exposeHeaders' | 'language' | 'body'>
  random?: () => number
  jobs?: JobsEntry
}

/** An application behind its limits, on a real socket. */
export interface App {
  readonly url: string
  /** Requests that reached a handler. */
  readonly calls: Call[]
  /** Diagnoses so far. */
  readonly warnings: string[]
  counts(): Counts
  setPolicies(policies: PolicyDocument): void
  /** Of accepted work: done in the application. */
  close(): Promise<void>
}

/** Starts an application that ends with the test. */
export async function start(kind: Kind, options: AppOptions): Promise<App> {
  const app = kind === 'the edge' ? await startEdge(options) : await startInApplication(kind, options)
  onTestFinished(() => app.close())
  return app
}

const ok = (): Reply => ({})

async function startInApplication(kind: 'Express' | 'Fastify', options: AppOptions): Promise<App> {
  const { policies, keys = {}, handler = ok, answers = {}, random, jobs = {} } = options
  const calls: Call[] = []
  const warnings: string[] = []
  const holderOf = (headers: IncomingHttpHeaders): Holder | undefined => keys[String(headers['x-api-key'])]
  const guard = createGuard<{ headers: IncomingHttpHeaders }>({
    policies,
    identify: ({ headers }) => {
      const holder = holderOf(headers)
      return holder === undefined ? undefined : { ...holder, keyId: idOf(String(headers['x-api-key'])) }
    },
    statusPath: '/rate-limit',
    jobs: memoryJobs({
      ...jobs,
      run: async ({ method, target, body }) => {
        const call = { method, path: target, told: undefined, client: undefined, body }
        calls.push(call)
        const { status = 200, body: text = 'ok', after } = handler(call)
        await after
        return { status, body: text }
      },
    }),
    on: { diagnosis: ({ message }) => void warnings.push(message) },
    ...answers,
    ...(random !== undefined && { random }),
  })
  const answer = (
    method: string,
    path: string,
    headers: IncomingHttpHeaders,
    body: unknown,
  ): { call: Call; reply: Reply } => {
    const holder = holderOf(headers)
    const call = { method, path, told: headers['catraca-answer'] as string | undefined, client: holder?.client, body }
    calls.push(call)
    const unknown = headers['x-api-key'] !== undefined && holder === undefined
    return { call, reply: unknown ? { status: 401 } : handler(call) }
  }
  const server = kind === 'Express' ? expressApp(guard, answer) : await fastifyApp(guard, answer)
  return {
    url: await listen(server),
    calls,
    warnings,
    counts: () => guard.counts,
    setPolicies: (document) => guard.replace(document),
    close: async () => {
      guard.close()
      await close(server)
    },
  }
}

type Answer = (
  method: string,
  path: string,
  headers: IncomingHttpHeaders,
  body: unknown,
) => { call: Call; reply: Reply }
type AnyGuard = ReturnType<typeof createGuard<{ headers: IncomingHttpHeaders }>>

function expressApp(guard: AnyGuard, answer: Answer): Server {
  const app = express()
  app.disable('etag')
  app.use(express.json())
  app.use(forExpress(guard))
  app.use((incoming, response, next) => {
    const { reply } = answer(incoming.method, incoming.originalUrl, incoming.headers, incoming.body)
    const send = (): void => {
      response.status(reply.status ?? 200).set(reply.headers ?? {})
      response.end(reply.body ?? 'ok')
    }
    if (reply.after === undefined) send()
    else reply.after.then(send, next)
  })
  return createServer(app)
}

async function fastifyApp(guard: AnyGuard, answer: Answer): Promise<Server> {
  const app = fastify()
  await app.register(forFastify(guard))
  app.all('*', async (incoming, reply) => {
    const { method, url, headers, body } = incoming
    const { reply: said } = answer(method, url, headers, body)
    await said.after
    return reply
      .code(said.status ?? 200)
      .headers(said.headers ?? {})
      .send(said.status === 304 ? undefined : (said.body ?? 'ok'))
  })
  await app.ready()
  return app.server
}

async function startEdge(options: AppOptions): Promise<App> {
  const { policies, keys = {}, handler = ok, answers = {}, random, jobs } = options
  const calls: Call[] = []
  const warnings: string[] = []
  const upstream = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const call = {
        method: incoming.method ?? '',
        path: incoming.url ?? '',
        told: incoming.headers['catraca-answer'] as string | undefined,
        client: undefined,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      }
      calls.push(call)
      const { status = 200, headers = {}, body = 'ok', after } = handler(call)
      const send = (): void => {
        response.writeHead(status, headers)
        response.end(status === 304 ? undefined : body)
      }
      if (after === undefined) send()
      else void after.then(send)
    })
  })
  const { body, ...told } = answers
  const edge = (document: PolicyDocument) => ({
    ...document,
    upstreams: { app: origin },
    auth: {
      apiKeys: {
        keys: Object.entries(keys).map(([key, holder]) => ({ sha256: hashOf(key), id: idOf(key), ...holder })),
      },
    },
    answers: told as NonNullable<Parameters<typeof createGateway>[0]['document']>['answers'] & object,
    ...(jobs !== undefined && { jobs }),
  })
  const origin = await listen(upstream)
  const gateway = createGateway({
    document: edge(policies),
    onWarning: (line) => void warnings.push(line),
    ...(body !== undefined && { body }),
    ...(random !== undefined && { random }),
  })
  const port = await gateway.listen({ port: 0, host: '127.0.0.1' })
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    warnings,
    counts: () => gateway.counts,
    setPolicies: (document) => gateway.reload(edge(document)),
    close: async () => {
      await gateway.close(0)
      await close(upstream)
    },
  }
}

function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

function idOf(key: string): string {
  return `id-${key}`
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function close(server: Server): Promise<void> {
  server.close()
  server.closeAllConnections()
  if (server.listening) await once(server, 'close')
}

export interface Heard {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON. */
  readonly json: Record<string, unknown>
  /** Milliseconds after the start of the test's clock. */
  readonly atMs: number
}

export interface Ask {
  method?: string
  headers?: Record<string, string>
  /** Sent as JSON. */
  body?: unknown
  key?: string
}

const agent = new Agent({ keepAlive: true, maxSockets: 400 })

/** Asks over a socket of its own or a kept one; resolves with the whole answer. */
export function ask(url: string, path = '/', { method = 'GET', headers = {}, body, key }: Ask = {}): Promise<Heard> {
  const text = body === undefined ? undefined : JSON.stringify(body)
  const all = {
    ...(key !== undefined && { 'x-api-key': key }),
    ...(text !== undefined && {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
    }),
    ...headers,
  }
  return new Promise((resolve, reject) => {
    const outgoing = request(new URL(path, url), { method, headers: all, agent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const answer = Buffer.concat(chunks).toString()
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: answer,
          get json() {
            return JSON.parse(answer) as Record<string, unknown>
          },
          atMs: Date.now() - t0,
        })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(text)
  })
}

export const t0 = Date.UTC(2026, 9, 17, 12)

/** Makes the clock of limits and their timers the test's own; sockets go on by themselves. */
export function ownTime(): void {
  vi.useFakeTimers({ now: t0, toFake: ['Date', 'setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
}

/** Lets sockets work until something holds; at most ten seconds of the real clock. */
export async function until(holds: () => boolean, what = 'it'): Promise<void> {
  const end = performance.now() + 10_000
  while (!holds()) {
    if (performance.now() > end) throw new Error(`${what} did not come`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Lets sockets come to rest: nothing moves for some turns of the event loop. */
export async function rest(turns = 60): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Moves the clock in steps, sockets coming to rest after each. */
export async function pass(ms: number, step = ms): Promise<void> {
  for (let done = 0; done < ms; done += step) {
    await vi.advanceTimersByTimeAsync(Math.min(step, ms - done))
    await rest()
  }
}

/** Sends requests one after the other. */
export async function askAll(url: string, path: string, count: number, options: Ask = {}): Promise<Heard[]> {
  const heard: Heard[] = []
  for (let index = 0; index < count; index++) heard.push(await ask(url, path, options))
  return heard
}

export function statusesOf(heard: readonly Heard[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of heard) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

import type { Guard, GuardRequest, Identity, Verdict } from 'catraca/http'

/** What a test says of a request; the rest has defaults. */
export interface Asked {
  method?: string
  target?: string
  peer?: string
  headers?: Record<string, string>
  identity?: Identity
  body?: unknown
  now?: number
  units?: number
}

/** A request whose identity, if any, the application has verified. */
export function request(asked: Asked = {}): GuardRequest<Asked> {
  const { method = 'GET', target = '/events', peer = '192.0.2.1', headers = {}, body, now, units } = asked
  return {
    method,
    target,
    peer,
    raw: asked,
    ...(now !== undefined && { now }),
    ...(units !== undefined && { units }),
    header: (name) => headers[name],
    body: () => body,
  }
}

/** Asks and expects an answer without waiting. */
export function ask(guard: Guard<Asked>, asked: Asked = {}): Verdict {
  const verdict = guard.ask(request(asked))
  if (verdict instanceof Promise) throw new Error('the guard had to wait')
  return verdict
}

/** How many of `count` equal requests pass. */
export function passing(guard: Guard<Asked>, count: number, asked: Asked): number {
  return Array.from({ length: count }, () => ask(guard, asked).allowed).filter(Boolean).length
}

/** The application of the tests: what it verified stands in the request. */
export function identityOf(asked: Asked): Identity | undefined {
  return asked.identity
}

/** The web globals the library needs: present in Node, Deno, Bun, workers and browsers. */
declare const performance: { now(): number }
declare const crypto: {
  getRandomValues<Numbers extends Int32Array | Uint32Array | Uint8Array>(numbers: Numbers): Numbers
}
declare class URLSearchParams {
  constructor(text: string)
  getAll(name: string): string[]
}
interface AbortSignal {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}
declare class AbortController {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
}

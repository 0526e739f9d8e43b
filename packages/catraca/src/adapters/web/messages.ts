/** What the adapters use of the `Headers` of the web. */
export interface WebHeaders {
  get(name: string): string | null
  set(name: string, value: string): void
  append(name: string, value: string): void
  delete(name: string): void
  forEach(each: (value: string, name: string) => void): void
}

/** What the adapters use of a `ReadableStream` of bytes. */
export interface WebStream {
  getReader(): WebReader
}

export interface WebReader {
  read(): Promise<{ done: boolean; value?: unknown }>
  cancel(reason?: unknown): Promise<void>
}

/** What the adapters use of an `AbortSignal`. */
export interface WebSignal {
  readonly aborted: boolean
  addEventListener(event: 'abort', listener: () => void, options?: { once: boolean }): void
  removeEventListener(event: 'abort', listener: () => void): void
}

/** What the adapters use of a `Request` of the web. */
export interface WebRequest {
  readonly method: string
  readonly url: string
  readonly headers: WebHeaders
  readonly bodyUsed: boolean
  readonly body: WebStream | null
  readonly signal: WebSignal
  clone(): WebRequest
}

/** What the adapters use of a `Response` of the web. */
export interface WebResponse {
  readonly status: number
  readonly statusText: string
  readonly headers: WebHeaders
  readonly body: WebStream | null
}

interface StreamController {
  enqueue(chunk: unknown): void
  close(): void
  error(reason: unknown): void
}

interface StreamSource {
  pull(controller: StreamController): Promise<void>
  cancel(reason: unknown): Promise<void>
}

/** The classes of the web, looked up when they are needed: whatever stands there then is what the platform uses. */
export const web = globalThis as unknown as {
  readonly Request: new (request: unknown, options?: object) => WebRequest
  readonly Response: new (body: unknown, options?: object) => WebResponse
  readonly Headers: new (fields?: unknown) => WebHeaders
  readonly ReadableStream: new (source: StreamSource, strategy: { highWaterMark: number }) => WebStream
  readonly TextDecoder: new () => { decode(bytes: Uint8Array): string }
}

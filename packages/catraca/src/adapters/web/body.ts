import { type WebResponse, type WebStream, web } from './messages.ts'

/** What is to be told of a body as it passes. */
export interface Watcher {
  /** A chunk passed. */
  chunk(chunk: unknown): void
  /** The body is over: sent whole, or broken off by either side. */
  end(whole: boolean): void
}

/** The same answer, its body watched. Chunks pass when they are asked for, one by one; nothing is read ahead. */
export function watched<S extends WebResponse>(response: S, watcher: Watcher): S {
  if (response.body !== null) return withBody(response, passing(response.body, watcher)) as S
  watcher.end(true)
  return response
}

function passing(body: WebStream, watcher: Watcher): WebStream {
  const reader = body.getReader()
  return new web.ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) {
            controller.close()
            watcher.end(true)
          } else {
            watcher.chunk(value)
            controller.enqueue(value)
          }
        } catch (error) {
          controller.error(error)
          watcher.end(false)
        }
      },
      async cancel(reason) {
        watcher.end(false)
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** The same answer with another body. */
export function withBody({ status, statusText, headers }: WebResponse, body: unknown): WebResponse {
  return new web.Response(body, { status, statusText, headers })
}

import type { AppAnswer, AppRequest } from 'catraca/testing'

/** An answer as a `Response`. */
export function responseOf({ status = 200, headers = {}, body }: AppAnswer): Response {
  const nothing = status === 204 || status === 304
  if (typeof body === 'object') return new Response(streamOf(body), { status, headers })
  return new Response(nothing ? null : (body ?? ''), { status, headers })
}

function streamOf(parts: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await iterator.next()
        if (done === true) controller.close()
        else controller.enqueue(encoder.encode(value))
      },
      // A generator that waits cannot be ended; nobody waits for it.
      cancel: () => void iterator.return?.(),
    },
    { highWaterMark: 0 },
  )
}

/** A request of the web as handlers of the suite see it. */
export function viewOf(request: Request, decision: AppRequest['decision']): AppRequest {
  return { header: (name) => request.headers.get(name) ?? undefined, decision, json: () => request.json() }
}

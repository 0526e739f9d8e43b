import { CatracaError, show } from '../core/errors.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { Rule } from '../core/rule.ts'
import { type Aborts, ByteGroup, type ByteGroupOptions } from './byte-group.ts'

/** Options of {@link shape}. */
export interface ShapeOptions extends ByteGroupOptions {
  /** Ends the stream: what waits rejects with the reason, and the source is closed. */
  signal?: Aborts
}

/** What is used of a `ReadableStream`, which not every browser can iterate. */
export interface WebStream<B extends Uint8Array = Uint8Array> {
  getReader(): {
    read(): Promise<{ done: boolean; value?: B | undefined }>
    cancel(reason?: unknown): Promise<void>
    releaseLock(): void
  }
}

/** The pieces of a stream, for one reader. */
export interface Shaped<B extends Uint8Array = Uint8Array> extends AsyncIterableIterator<B, void, undefined> {
  /** Ends the stream, also in the middle of a wait, and closes the source. */
  return(): Promise<IteratorResult<B, void>>
}

/** Where bytes come from: a stream of Node or of the web, or any async iterable. */
export type ByteSource<B extends Uint8Array = Uint8Array> = AsyncIterable<B> | WebStream<B>

/**
 * Passes the bytes of a stream on at a rate. Chunks are cut where needed and never joined; every byte is delivered, in
 * order, and counted when it is passed on. The source is read only when a chunk is asked for, so back-pressure reaches
 * it. What the source throws is thrown on; who stops reading closes it. While it waits, the process stays alive.
 *
 * Goes into `pipeline` of `node:stream`, which gives a signal that ends the wait when the destination fails, `Readable.from` and, where there is one, `ReadableStream.from`.
 *
 * Bounds. At most burst + limit × T ÷ window bytes pass in any half-open span T, as of the rule. With
 * `peakBytesPerSecond` at most that × (T + 0.1 s), from the start × T; bytes that wait for the peak are charged up to 50 ms
 * before they pass, so that the bucket refills as if they flowed: T of the first bound is then 50 ms longer. Pieces are
 * of at most what comes back in 50 ms, at least one byte, never more than the bucket.
 *
 * @param by A bucket of bytes such as `tokenBucket({ limit: 2_000_000, window: '1s', burst: 16_000_000 })`, full at the
 * start, or a group that several streams share.
 * @example
 * const rate = tokenBucket({ limit: 64_000, window: '1s' })
 * await pipeline(file, (bytes, options?: ShapeOptions) => shape(bytes, rate, options), response)
 */
export function shape<B extends Uint8Array>(
  source: ByteSource<B>,
  by: Rule | ByteGroup,
  options: ShapeOptions = {},
): Shaped<B> {
  rejectUnknown(['signal', 'peakBytesPerSecond'], options, 'shape')
  const { signal, ...rest } = options
  const iterator = iteratorOf(source)
  if (!(by instanceof ByteGroup)) return shaped(iterator, new ByteGroup(by, rest), signal)
  if (rest.peakBytesPerSecond === undefined) return shaped(iterator, by, signal)
  const message = 'shape.peakBytesPerSecond stands beside a group; allowed: that it is given to the group'
  throw new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'shape.peakBytesPerSecond' })
}

/** The pieces as they are read. A generator alone would hear of `return` only when it does not wait any more. */
function shaped<B extends Uint8Array>(
  source: AsyncIterator<B>,
  group: ByteGroup,
  signal: Aborts | undefined,
): Shaped<B> {
  const end = new End()
  const inner = pieces(source, group, end, signal)
  let begun = false
  return {
    next: () => {
      begun = true
      return inner.next()
    },
    return: () => {
      end.come(left)
      if (!begun) close(source)
      begun = true
      return inner.return()
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

/** Why a stream ends whose reader left. */
const left = Symbol('left')

/** Something that can end a stream in the middle of a wait. */
class End implements Aborts {
  aborted = false
  reason: unknown = undefined
  private readonly listeners = new Set<() => void>()

  addEventListener(_type: 'abort', listener: () => void): void {
    this.listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.listeners.delete(listener)
  }

  come(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    for (const listener of this.listeners) listener()
  }
}

async function* pieces<B extends Uint8Array>(
  source: AsyncIterator<B>,
  group: ByteGroup,
  end: End,
  signal: Aborts | undefined,
): AsyncGenerator<B, void, undefined> {
  const abort = (): void => end.come(signal?.reason)
  /** Bytes that may pass without asking. */
  let credit = 0
  let ended = false
  try {
    if (signal?.aborted === true) abort()
    signal?.addEventListener('abort', abort, { once: true })
    for (;;) {
      const next = await unlessAborted(() => source.next(), end)
      if (next.done === true) {
        ended = true
        return
      }
      const chunk: B = next.value
      if (!(chunk instanceof Uint8Array)) throw noBytes(chunk)
      for (let at = 0; at < chunk.length; ) {
        if (end.aborted) throw end.reason
        if (credit === 0) credit = await group.ask(end)
        const next = Math.min(chunk.length, at + credit)
        const piece = chunk.subarray(at, next) as B
        // Before, as the reader may never come back from it.
        credit -= next - at
        at = next
        yield piece
      }
    }
  } catch (error) {
    if (error !== left) throw error
  } finally {
    signal?.removeEventListener('abort', abort)
    group.giveBack(credit)
    if (!ended) close(source)
  }
}

/** Tells the source that nobody reads on, and waits for nothing: it may be in the middle of a chunk that never comes. */
function close(source: AsyncIterator<unknown>): void {
  Promise.resolve(source.return?.()).catch(() => {})
}

function unlessAborted<T>(run: () => Promise<T>, signal: Aborts): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    run()
      .finally(() => signal.removeEventListener('abort', abort))
      .then(resolve, reject)
  })
}

function iteratorOf<B extends Uint8Array>(source: ByteSource<B>): AsyncIterator<B> {
  const { [Symbol.asyncIterator]: iterate } = (source ?? {}) as Partial<AsyncIterable<B>>
  if (typeof iterate === 'function') return destroying(source, iterate.call(source))
  if (typeof (source as Partial<WebStream> | undefined)?.getReader !== 'function') {
    const message = `shape.source is ${show(source)}; allowed: a stream or another async iterable of Uint8Array`
    throw new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'shape.source', value: source })
  }
  const reader = (source as WebStream<B>).getReader()
  return {
    async next() {
      const { done, value } = await reader.read()
      if (!done && value !== undefined) return { done: false, value }
      reader.releaseLock()
      return { done: true, value: undefined }
    },
    async return() {
      await reader.cancel()
      reader.releaseLock()
      return { done: true, value: undefined }
    },
  }
}

/** An iterator of a stream of Node in the middle of a chunk does not hear `return` until that came: the stream does. */
function destroying<B>(source: object, iterator: AsyncIterator<B>): AsyncIterator<B> {
  const stream = source as { destroy?: () => unknown }
  if (typeof stream.destroy !== 'function') return iterator
  return {
    next: () => iterator.next(),
    return: async () => {
      stream.destroy?.()
      return { done: true, value: undefined }
    },
  }
}

function noBytes(chunk: unknown): CatracaError {
  const message = `shape.source gave ${show(chunk)}; allowed: Uint8Array, so no stream with an encoding or of objects`
  return new CatracaError('CATRACA_OPTION_INVALID', message, { path: 'shape.source', value: chunk })
}

import { CatracaError, show } from '../core/errors.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { KeptAnswer } from '../policy/verdict.ts'

/** A whole answer with the time at which it was kept. */
export interface CachedAnswer extends KeptAnswer {
  /** Milliseconds since the epoch at which the origin made it: its `Age`, where it had one, is taken off. */
  readonly madeAtMs: number
}

/**
 * Where copies of answers are kept for `overflow: [{ stale: … }]`. What it forgets is missed by nobody: the next answer
 * to an excess applies. A promise that rejects, or takes longer than 250 ms, counts as none, and no request waits for
 * {@link AnswerCache.set}.
 */
export interface AnswerCache {
  /** Answers with longer bodies are not given to it. */
  readonly maxBodyBytes: number
  /** The copy under a key, however old. */
  get(key: string): CachedAnswer | undefined | Promise<CachedAnswer | undefined>
  /** Keeps a copy in place of the one before. */
  set(key: string, answer: CachedAnswer): void | Promise<void>
}

/** Options of {@link memoryCache}. */
export interface MemoryCacheOptions {
  /** Bytes of all copies together, bodies, fields and keys: 1,024 to 2^40. Default 32 MiB. */
  maxBytes?: number
  /** Bytes of one body: 1 to `maxBytes`. Default 1 MiB, or `maxBytes` where that is less. */
  maxBodyBytes?: number
}

/** What a copy costs beyond its texts and its body. */
const overheadBytes = 256
const mebibyte = 1_048_576

/** Keeps copies in this process; the one used longest ago makes room. Cost of a look-up: two operations on a Map. */
export class MemoryCache implements AnswerCache {
  readonly maxBodyBytes: number
  private readonly maxBytes: number
  private readonly copies = new Map<string, { answer: CachedAnswer; bytes: number }>()
  private total = 0

  /** @internal Use {@link memoryCache}. */
  constructor(maxBytes: number, maxBodyBytes: number) {
    this.maxBytes = maxBytes
    this.maxBodyBytes = maxBodyBytes
  }

  /** Copies that are kept. */
  get size(): number {
    return this.copies.size
  }

  /** Bytes of all copies. */
  get bytes(): number {
    return this.total
  }

  get(key: string): CachedAnswer | undefined {
    const copy = this.copies.get(key)
    if (copy === undefined) return undefined
    this.copies.delete(key)
    this.copies.set(key, copy)
    return copy.answer
  }

  set(key: string, answer: CachedAnswer): void {
    this.remove(key)
    const bytes = bytesOf(key, answer)
    if (answer.body.length > this.maxBodyBytes || bytes > this.maxBytes) return
    for (const oldest of this.copies.keys()) {
      if (this.total + bytes <= this.maxBytes) break
      this.remove(oldest)
    }
    this.copies.set(key, { answer, bytes })
    this.total += bytes
  }

  private remove(key: string): void {
    this.total -= this.copies.get(key)?.bytes ?? 0
    this.copies.delete(key)
  }
}

function bytesOf(key: string, { fields, body }: CachedAnswer): number {
  let texts = key.length
  for (const [name, value] of fields) texts += name.length + value.length
  return overheadBytes + 2 * texts + body.length
}

/** A bounded cache in memory. Throws a `CatracaError` for options that are not allowed. */
export function memoryCache(options: MemoryCacheOptions = {}): MemoryCache {
  rejectUnknown(['maxBytes', 'maxBodyBytes'], options, 'memoryCache')
  const { maxBytes = 32 * mebibyte } = options
  check(maxBytes, 1_024, 2 ** 40, 'memoryCache.maxBytes')
  const { maxBodyBytes = Math.min(mebibyte, maxBytes) } = options
  check(maxBodyBytes, 1, maxBytes, 'memoryCache.maxBodyBytes')
  return new MemoryCache(maxBytes, maxBodyBytes)
}

function check(value: unknown, min: number, max: number, path: string): void {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return
  const message = `${path} is ${show(value)}; allowed: a whole number of bytes from ${min} to ${max}`
  throw new CatracaError('CATRACA_OPTION_INVALID', message, { path, value })
}

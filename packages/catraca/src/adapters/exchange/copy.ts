import type { KeptAnswer } from '../../policy/verdict.ts'
import { Collected } from '../mount/collected.ts'
import { isKept } from '../mount/field-names.ts'
import type { Pass } from '../mount/gate.ts'
import { beforeHead, type WholeResponse } from './head.ts'
import type { NodeRequest, NodeResponse } from './messages.ts'
import { isWhole } from './over.ts'

interface Writable {
  write: (chunk: unknown, ...rest: unknown[]) => unknown
  end: (...rest: unknown[]) => unknown
  once(event: 'finish', listener: () => void): unknown
}

/**
 * Gives `pass.keep` the whole answer once it was sent, where its body has at most `pass.keepBytes`. Chunks are copied as
 * they pass. Nothing is kept of an answer to HEAD, of one that broke, or of one shorter than it said.
 */
export function copyAnswer(request: Pick<NodeRequest, 'method'>, response: NodeResponse, pass: Pass): void {
  if (request.method === 'HEAD') return
  const whole = response as unknown as Writable
  const { write, end } = whole
  const body = new Collected(pass.keepBytes)
  let head: Omit<KeptAnswer, 'body'> | undefined
  let length: string | undefined
  beforeHead(response, (sent) => {
    head = { status: sent.statusCode, fields: keptFields(sent) }
    length = sent.getHeader('Content-Length')?.toString()
  })
  // HTTP/2 writes the last chunk by `write`.
  let ending = false
  whole.write = (chunk, ...rest) => {
    if (!ending) body.add(bytesOf(chunk, rest[0]))
    return write.call(whole, chunk, ...rest)
  }
  whole.end = (...rest) => {
    if (!ending && rest[0] !== undefined && rest[0] !== null && typeof rest[0] !== 'function') {
      body.add(bytesOf(rest[0], rest[1]))
    }
    ending = true
    return end.apply(whole, rest)
  }
  whole.once('finish', () => {
    const bytes = body.take()
    if (head === undefined || bytes === undefined || !isWhole(response)) return
    if (length === undefined || Number(length) === bytes.length) pass.keep?.({ ...head, body: bytes })
  })
}

function keptFields(response: WholeResponse): [name: string, value: string][] {
  const kept: [string, string][] = []
  for (const [name, value] of Object.entries(response.getHeaders())) {
    if (value === undefined || !isKept(name)) continue
    for (const one of Array.isArray(value) ? value : [value]) kept.push([name, String(one)])
  }
  return kept
}

/** A chunk as bytes, which may be a text in any encoding that Node knows. */
function bytesOf(chunk: unknown, encoding: unknown): unknown {
  if (typeof chunk !== 'string') return chunk
  const { Buffer } = globalThis as unknown as { Buffer: { from(text: string, encoding?: string): Uint8Array } }
  return typeof encoding === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk)
}

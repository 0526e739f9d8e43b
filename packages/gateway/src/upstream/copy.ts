import type { KeptAnswer } from 'catraca/http'

/** Collects a copy of an answer that is passed on, unless it becomes too long. */
export class Copy {
  private chunks: Buffer[] | undefined = []
  private bytes = 0
  private readonly keep: (answer: KeptAnswer) => void
  private readonly maxBytes: number
  private readonly status: number
  private readonly fields: readonly string[]

  /** @param fields Names and values in turn. */
  constructor(keep: (answer: KeptAnswer) => void, maxBytes: number, status: number, fields: readonly string[]) {
    this.keep = keep
    this.maxBytes = maxBytes
    this.status = status
    this.fields = fields
  }

  add(chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.bytes > this.maxBytes) this.chunks = undefined
    // The client may use the memory of a chunk again.
    this.chunks?.push(Buffer.from(chunk))
  }

  /** The answer came whole. */
  end(): void {
    if (this.chunks === undefined) return
    const fields: [string, string][] = []
    for (let at = 0; at < this.fields.length; at += 2) {
      fields.push([this.fields[at] as string, this.fields[at + 1] as string])
    }
    this.keep({ status: this.status, fields, body: Buffer.concat(this.chunks) })
  }
}

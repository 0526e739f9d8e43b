/** Copies of the chunks of a body, up to a number of bytes. */
export class Collected {
  private readonly most: number
  private chunks: Uint8Array[] = []
  private bytes = 0

  constructor(most: number) {
    this.most = most
  }

  /** Adds a copy of a chunk, since its owner may write into it again; `slice` of a Node buffer is none. False when it is too long, or no bytes. */
  add(chunk: unknown): boolean {
    if (!isBytes(chunk)) this.bytes = Infinity
    else this.bytes += chunk.length
    if (this.bytes <= this.most) this.chunks.push(new Uint8Array(chunk as Uint8Array))
    else this.chunks = []
    return this.bytes <= this.most
  }

  /** The whole body; undefined when it was too long. */
  take(): Uint8Array | undefined {
    if (this.bytes > this.most) return undefined
    const whole = new Uint8Array(this.bytes)
    let at = 0
    for (const chunk of this.chunks) {
      whole.set(chunk, at)
      at += chunk.length
    }
    return whole
  }
}

/** Of any realm: streams of the platform may belong to another one. */
function isBytes(chunk: unknown): chunk is Uint8Array {
  return ArrayBuffer.isView(chunk) && (chunk as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT === 1
}

/** Copies of the chunks of a body, up to a number of bytes. */
export class Collected {
  private readonly most: number
  private chunks: Uint8Array[] = []
  private bytes = 0

  constructor(most: number) {
    this.most = most
  }

  /** Adds a copy of a chunk, since its owner may write into it again. Undefined for one that cannot be copied. */
  add(chunk: Uint8Array | undefined): void {
    this.bytes += chunk?.length ?? Infinity
    if (this.bytes > this.most) this.chunks = []
    else if (chunk !== undefined) this.chunks.push(chunk.slice())
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

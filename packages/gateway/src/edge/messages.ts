import { IncomingMessage, ServerResponse } from 'node:http'
import type { KeptAnswer } from 'catraca/http'

/** A request as the edge receives it. */
export class EdgeRequest extends IncomingMessage {
  /** The whole body, where it was read to know whom to count. */
  taken: Buffer | undefined
  /** Of accepted work: its header fields for the service, names and values in turn, made while its caller was there. */
  fields: readonly string[] | undefined
  /** What the service is told about the limits: `degrade` or `mark`. */
  told: string | undefined
  /**
   * The upstream client destroys the body it was given when it ends early. The connection belongs to the caller, who is
   * still to be answered: while it lives, the rest of the body is dropped instead.
   */
  override destroy(error?: Error): this {
    if ((this.readableEnded && this.complete) || this.socket.destroyed) return super.destroy(error)
    this.resume()
    return this
  }
}

/** What a response tells whoever fills it. */
export interface Listener {
  /** The caller takes more bytes. */
  drained(): void
  /** The response is over: sent, or its connection gone. */
  closed(): void
}

/** A response of the edge, with what is known about it, so that no event needs a function of its own. */
export class EdgeResponse extends ServerResponse<EdgeRequest> {
  /** `RateLimit-Policy` and `RateLimit` with their values, in the flat form of `writeHead`. */
  limitFields: readonly string[] = []
  /** True where the fields of limits are to be taken off an answer that shared caches may keep. */
  omitsCacheable = false
  /** Set where a copy of the whole answer is wanted, if its body has at most so many bytes. */
  keep: ((answer: KeptAnswer) => void) | undefined
  keepBytes = 0
  /** True once `100 Continue` was sent. */
  continued = false
  private listener: Listener | undefined

  /** Reports the end of the response to `listener`; {@link EdgeResponse.awaitDrain} asks for the other event. */
  listenTo(listener: Listener): void {
    this.listener = listener
    this.on('close', onClose)
  }

  /** Reports once when the caller takes more bytes. */
  awaitDrain(): void {
    this.once('drain', onDrain)
  }

  /** @internal */
  tellDrained(): void {
    this.listener?.drained()
  }

  /** @internal */
  tellClosed(): void {
    this.listener?.closed()
  }
}

function onClose(this: EdgeResponse): void {
  this.tellClosed()
}

function onDrain(this: EdgeResponse): void {
  this.tellDrained()
}

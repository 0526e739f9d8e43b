import type { IncomingHttpHeaders } from 'node:http'
import { isPubliclyCacheable, limitFieldNames } from 'catraca/http'
import { spareUnreadBody } from 'catraca/node'
import type { Dispatcher } from 'undici'
import type { EdgeRequest, EdgeResponse, Listener } from '../edge/messages.ts'
import type { Timeouts } from '../timeouts.ts'
import { Copy } from './copy.ts'
import { type RawHeaders, reasonPhrase, responseHeaders } from './response-headers.ts'

/** What an exchange tells the proxy that began it. */
export interface ExchangeOwner {
  /** True while the gateway stops: connections then end with their answer. */
  readonly closing: boolean
  readonly timeouts: Timeouts
  /** The upstream gave no answer that can be passed on; nothing was sent to the caller yet. */
  failed(request: EdgeRequest, response: EdgeResponse, error: Error): void
  /** The upstream stopped in the middle of its answer. */
  brokeOff(error: Error): void
  ended(): void
}

class CallerLeft extends Error {}
/** An answer that did not come in time; the code says what was waited for. */
class TimedOut extends Error {
  readonly code: 'UND_ERR_CONNECT_TIMEOUT' | 'UND_ERR_HEADERS_TIMEOUT'

  constructor(code: TimedOut['code']) {
    super(code)
    this.code = code
  }
}
class UnknownCoding extends Error {
  readonly code = 'HPE_UNKNOWN_TRANSFER_CODING'
}

/**
 * One request on its way through: passes the upstream's answer to the caller as it comes. A caller who reads slowly
 * stops the upstream from sending, one who leaves ends the upstream's work. Nothing is collected.
 */
export class Exchange implements Dispatcher.DispatchHandler, Listener {
  private readonly owner: ExchangeOwner
  private readonly request: EdgeRequest
  private readonly response: EdgeResponse
  private controller: Dispatcher.DispatchController | undefined
  /** The caller is gone, or was answered already. */
  private callerLeft = false
  private timer: NodeJS.Timeout
  private bytesRead = 0
  private bytesSent = false
  private copy: Copy | undefined

  constructor(owner: ExchangeOwner, request: EdgeRequest, response: EdgeResponse) {
    this.owner = owner
    this.request = request
    this.response = response
    // The client's own timers are coarse: they tick every half second.
    this.timer = setTimeout(connectTooLong, owner.timeouts.connectMs, this)
    response.listenTo(this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    clearTimeout(this.timer)
    this.controller = controller
    if (this.callerLeft) controller.abort(new CallerLeft())
    else this.timer = setTimeout(answerTooLong, this.owner.timeouts.responseMs, this)
  }

  /** @internal There is no connection yet that could be given up: the caller is answered, and the request stays unsent. */
  connectTookTooLong(): void {
    this.callerLeft = true
    this.owner.failed(this.request, this.response, new TimedOut('UND_ERR_CONNECT_TIMEOUT'))
  }

  /** @internal */
  answerTookTooLong(): void {
    const { socket, complete } = this.request
    const moved = socket.bytesRead !== this.bytesRead
    this.bytesRead = socket.bytesRead
    // An upstream may wait for the rest of a body that the caller is still sending; not taking what is there is its fault.
    if (!complete && (moved || !this.request.isPaused())) {
      this.timer = setTimeout(answerTooLong, this.owner.timeouts.responseMs, this)
      return
    }
    this.controller?.abort(new TimedOut('UND_ERR_HEADERS_TIMEOUT'))
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    phrase?: string,
  ): void {
    const { request, response } = this
    clearTimeout(this.timer)
    if (status < 200) {
      this.timer = setTimeout(answerTooLong, this.owner.timeouts.responseMs, this)
      passInterim(request, response, status, headers)
      return
    }
    // The body comes with its other codings still on and, without this field, nothing that says so.
    if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') throw new UnknownCoding()
    const fields = limitFieldsOf(response, headers['cache-control']).concat(
      responseHeaders(controller.rawHeaders as RawHeaders, headers),
    )
    spareUnreadBody(request, response)
    if (this.owner.closing) response.shouldKeepAlive = false
    // An answer that ends with its connection may have broken off: nobody could tell.
    const tellsItsEnd = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    if (response.keep !== undefined && tellsItsEnd)
      this.copy = new Copy(response.keep, response.keepBytes, status, fields)
    const reason = reasonPhrase(phrase)
    if (reason === undefined) response.writeHead(status, fields)
    else response.writeHead(status, reason, fields)
    process.nextTick(sendHead, this)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.bytesSent = true
    this.copy?.add(chunk)
    if (this.response.write(chunk)) return
    controller.pause()
    this.response.awaitDrain()
  }

  onResponseEnd(): void {
    this.bytesSent = true
    this.copy?.end()
    this.response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    clearTimeout(this.timer)
    if (this.callerLeft || this.request.socket.destroyed || this.response.writableEnded) return
    if (!this.response.headersSent) {
      this.owner.failed(this.request, this.response, error)
      return
    }
    this.owner.brokeOff(error)
    // Only a broken connection tells the caller that the answer is not whole.
    this.response.destroy()
  }

  drained(): void {
    this.controller?.resume()
  }

  closed(): void {
    clearTimeout(this.timer)
    this.callerLeft ||= !this.response.writableFinished
    if (this.callerLeft) this.controller?.abort(new CallerLeft())
    this.owner.ended()
  }

  /** @internal */
  sendHeadNow(): void {
    if (!this.bytesSent) this.response.flushHeaders()
  }
}

function connectTooLong(exchange: Exchange): void {
  exchange.connectTookTooLong()
}

function answerTooLong(exchange: Exchange): void {
  exchange.answerTookTooLong()
}

/** The head waits for the first bytes of the body, which mostly come with it; when they do not, it goes alone. */
function sendHead(exchange: Exchange): void {
  exchange.sendHeadNow()
}

/** What is told of limits; on an answer that shared caches may keep nothing of them, where that was asked for. */
function limitFieldsOf({ limitFields, omitsCacheable }: EdgeResponse, cacheControl: string | undefined): string[] {
  if (!omitsCacheable || !isPubliclyCacheable(cacheControl)) return [...limitFields]
  const kept: string[] = []
  for (let at = 0; at < limitFields.length; at += 2) {
    const name = limitFields[at] as string
    if (!limitFieldNames.includes(name.toLowerCase())) kept.push(name, limitFields[at + 1] as string)
  }
  return kept
}

/** Passes 102 and 103 on. 100 is answered at the edge, and HTTP/1.0 callers know none of them. */
function passInterim(request: EdgeRequest, response: EdgeResponse, status: number, headers: IncomingHttpHeaders): void {
  if (request.httpVersionMinor === 0) return
  if (status === 102) response.writeProcessing()
  if (status !== 103 || headers['link'] === undefined) return
  try {
    response.writeEarlyHints({ link: headers['link'] })
  } catch {
    // A hint that cannot be read is none.
  }
}

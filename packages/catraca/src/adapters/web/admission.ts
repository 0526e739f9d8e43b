import { Collected } from '../mount/collected.ts'
import { isKept } from '../mount/field-names.ts'
import type { Gate, Pass } from '../mount/gate.ts'
import { settleUp } from '../mount/settle.ts'
import { watched } from './body.ts'
import { withFields } from './fields.ts'
import type { WebHeaders, WebRequest, WebResponse } from './messages.ts'

/** An admitted request, from before its handler is called until its answer is over. */
export class Admission<Q, S extends WebResponse> {
  private readonly gate: Gate<Q, S>
  private readonly pass: Pass
  private readonly request: WebRequest
  private readonly raw: Q
  private readonly aborted: (() => void) | undefined
  private over = false

  /** @param raw The request of the framework, as `settle` gets it. */
  constructor(gate: Gate<Q, S>, pass: Pass, request: WebRequest, raw: Q) {
    this.gate = gate
    this.pass = pass
    this.request = request
    this.raw = raw
    if (!pass.holds) return
    // Seen also while the handler still works, and where nobody begins to read the body.
    this.aborted = () => this.end()
    request.signal.addEventListener('abort', this.aborted, { once: true })
  }

  /** The answer as it is to be sent: with the header fields of the limit, its end watched where something follows from it. */
  finish(response: S): S {
    const { gate, pass, request } = this
    const copies = pass.keep !== undefined && request.method !== 'HEAD'
    const head = copies ? { status: response.status, fields: keptFields(response.headers) } : undefined
    const told = withFields(response, gate.omits, gate.fieldsOf(pass)) as S
    if (!pass.holds && gate.settles === undefined && head === undefined) return told
    if (request.method === 'HEAD') {
      // Nobody reads the body of its answer.
      this.settle(told)
      this.end()
      return told
    }
    const collected = new Collected(head === undefined ? -1 : pass.keepBytes)
    return watched(told, {
      chunk: (chunk) => void collected.add(chunk),
      end: (whole) => {
        if (whole) this.settle(told)
        this.end()
        const body = whole ? collected.take() : undefined
        if (head !== undefined && body !== undefined) pass.keep?.({ ...head, body })
      },
    })
  }

  private settle(response: S): void {
    const { gate, pass, raw } = this
    if (!this.over && gate.settles !== undefined) settleUp(gate, pass, raw, response)
  }

  /** The answer is over, or there is none; does nothing a second time. */
  end(): void {
    if (this.over) return
    this.over = true
    if (this.aborted === undefined) return
    this.request.signal.removeEventListener('abort', this.aborted)
    this.gate.release(this.pass)
  }
}

function keptFields(headers: WebHeaders): [name: string, value: string][] {
  const kept: [string, string][] = []
  headers.forEach((value, name) => {
    if (isKept(name)) kept.push([name, value])
  })
  return kept
}

import type { JobsEntry } from '@catraca/config'
import { type JobStatus, type Jobs, type MemoryJobs, memoryJobs, type Work } from 'catraca/http'
import { hasBody } from 'catraca/node'
import type { EdgeRequest } from '../edge/messages.ts'

/** Sends a request that was accepted to its service; rejects when no service answers it. */
export type CarryOut = (request: EdgeRequest, signal: AbortSignal) => Promise<Carried>

/** What a service answered to accepted work. */
export interface Carried {
  readonly status: number
  /** The body as JSON where it is, else as text; cut where it is long. */
  readonly body?: unknown
}

/** Accepted requests of the edge: carried out in this process, where their body was read whole. */
export class EdgeJobs implements Jobs<EdgeRequest> {
  private readonly jobs: MemoryJobs<EdgeRequest>
  private readonly fieldsOf: (request: EdgeRequest) => readonly string[]

  /** @param fieldsOf The header fields with which a request would be sent to its service now. */
  constructor(entry: JobsEntry, carryOut: CarryOut, fieldsOf: (request: EdgeRequest) => readonly string[]) {
    this.fieldsOf = fieldsOf
    this.jobs = memoryJobs<EdgeRequest>({
      ...entry,
      run: async ({ request }, signal) => {
        const answer = await carryOut(request, signal)
        if (answer.status >= 400) throw new Error(`the service answered ${answer.status}`)
        return answer
      },
    })
  }

  get path(): string {
    return this.jobs.path
  }

  submit(work: Work<EdgeRequest>): string | undefined {
    // A body that is long, or no JSON, was not read: it cannot be sent once its caller has gone.
    const { request } = work
    if (hasBody(request) && request.taken === undefined) return undefined
    // Later its caller has no address any more, and its key may be one that is passed on.
    request.fields = [...this.fieldsOf(request)]
    return this.jobs.submit(work)
  }

  find(id: string): JobStatus | undefined {
    return this.jobs.find(id)
  }

  close(): void {
    this.jobs.close()
  }
}

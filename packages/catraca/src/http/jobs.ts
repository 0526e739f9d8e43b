import type { ReadyAnswer } from '../policy/verdict.ts'

/** A request that was accepted, to be carried out later. */
export interface Work<R = unknown> {
  /** What `identify` and the other functions of the application receive; its connection may be gone by then. */
  readonly request: R
  readonly method: string
  /** The request target as received. */
  readonly target: string
  /** The body as parsed, where it was; see `GuardRequest.body`. */
  readonly body: unknown
  /** Whose it is, as JSON: the policy, and its client and user, or the address of nobody known. Callers have room in a line each. */
  readonly caller: string
  /**
   * Milliseconds until the work may be tried again; 0: its policies have admitted it and were charged, it may run now and
   * `over` is to be called at its end. A runner elsewhere that does not ask runs at its own pace.
   */
  ready(): number | Promise<number>
  over(): void
}

/** What is known of accepted work. */
export interface JobStatus {
  readonly id: string
  readonly state: 'queued' | 'running' | 'done' | 'failed'
  /** ISO 8601, as the others. */
  readonly acceptedAt: string
  readonly startedAt?: string
  readonly endedAt?: string
  /** What the work gave, as JSON; left out where it is none. */
  readonly result?: unknown
  /** Why it failed, in words that callers may read. */
  readonly error?: string
}

/**
 * Where accepted work goes, for `overflow: [accept]`. Ids must not be guessable, 16 to 128 of
 * `A-Z a-z 0-9 _ -`: whoever has one sees the status.
 * A promise that rejects counts as no room, or as not found.
 */
export interface Jobs<R = unknown> {
  /** Where callers ask for the status: `<path>/<id>`. */
  readonly path: string
  /** Takes the work and gives its id; undefined, or what is no id, when there is no room: the next answer applies. */
  submit(work: Work<R>): string | undefined | Promise<string | undefined>
  /** What is known of an id; undefined when it is none, or was forgotten. */
  find(id: string): JobStatus | undefined | Promise<JobStatus | undefined>
  /** Stops; work that waits is not carried out. */
  close(): void | Promise<void>
}

/** The id in a request for a status; undefined for other requests. */
export function jobIdIn(path: string, method: string, target: string): string | undefined {
  if ((method !== 'GET' && method !== 'HEAD') || !target.startsWith(`${path}/`)) return undefined
  const [id = ''] = target.slice(path.length + 1).split(/[?#]/, 1)
  return isJobId(id) ? id : undefined
}

/** True for an id that may stand in a path, and is long enough not to be guessed. */
export function isJobId(id: unknown): id is string {
  return typeof id === 'string' && /^[\w-]{16,128}$/.test(id)
}

/** 202 with the place where the status can be asked for. */
export function acceptedAnswer(path: string, id: string): ReadyAnswer {
  const location = `${path}/${id}`
  const fields = ['Location', location, ...jsonFields]
  return { status: 202, fields, body: `${JSON.stringify({ id, state: 'queued', status: location })}\n` }
}

/** The status of work; 404 where there is none. */
export function jobAnswer(status: JobStatus | null | undefined): ReadyAnswer {
  if (status) return { status: 200, fields: jsonFields, body: `${jsonOf(status)}\n` }
  const problem = { type: 'about:blank', title: 'Not Found', status: 404, detail: 'No work of this id is known.' }
  const fields = ['Cache-Control', 'no-store', 'Content-Type', 'application/problem+json']
  return { status: 404, fields, body: `${JSON.stringify(problem)}\n` }
}

/** Without a result that is no JSON: what was done is done. */
function jsonOf(status: JobStatus): string {
  try {
    return JSON.stringify(status)
  } catch {
    return JSON.stringify({ ...status, result: undefined })
  }
}

const jsonFields = ['Cache-Control', 'no-store', 'Content-Type', 'application/json']

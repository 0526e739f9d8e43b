import { createGuard } from '../../http/guard.ts'
import type { Jobs, Work } from '../../http/jobs.ts'
import { isJobId } from '../../http/jobs.ts'
import type { GuardRequest } from '../../http/request.ts'
import type { DeclareTest } from '../adapter/app.ts'
import { equal, eventually, like, pause } from '../check.ts'

/** A fresh runner without work. */
export interface JobsScene {
  readonly jobs: Jobs<string>
  /** Pieces of work of one caller that it takes while none can run, at least 2. */
  readonly room: number
  close(): void | Promise<void>
}

/** What a test says of a piece of work; the rest has defaults. */
interface Told {
  name?: string
  caller?: string
  /** Milliseconds that the policies say, one after the other; then 0. Default: 0 at once. */
  waits?: number[]
  /** The policies never admit it. */
  never?: true
}

/** A piece of work that tells what was done with it. */
class TracedWork implements Work<string> {
  readonly method = 'POST'
  readonly target = '/import'
  readonly request: string
  readonly body: unknown
  readonly caller: string
  asked = 0
  overs = 0
  /** True once its policies admitted it. */
  admitted = false
  private readonly told: Told

  constructor(told: Told) {
    this.told = told
    this.request = told.name ?? 'work'
    this.caller = told.caller ?? 'ana'
    this.body = { name: this.request }
  }

  async ready(): Promise<number> {
    const wait = this.told.never === true ? 3_600_000 : (this.told.waits?.[this.asked] ?? 0)
    this.asked++
    if (Number.isNaN(wait)) throw new Error('the policies cannot be asked')
    this.admitted = wait === 0
    return wait
  }

  over(): void {
    this.overs++
  }
}

/** Carries out what a suite has submitted. */
type Run = (work: Work<string>) => unknown

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
/** Long enough for what must not happen to happen. */
const whileMs = 100

/**
 * Tests that a runner of accepted work keeps its contract: ids that nobody guesses; work that runs once, when its policies
 * admit it, and whose end is told to them; a status that says what became of it; an end of its room; and none of it after
 * the close. About twelve tests, for runners that ask {@link Work.ready}.
 *
 * @param test Declares a test: `test` of vitest, `node:test`, jest.
 * @param start Starts a runner that carries work out by calling `run`, one piece at a time or several.
 */
export function jobsSuite(test: DeclareTest, start: (run: Run) => Promise<JobsScene>): void {
  const declare = (
    name: string,
    check: (scene: JobsScene, ran: TracedWork[], give: (run: Run) => void) => Promise<void>,
  ): void => {
    test(name, async () => {
      const ran: TracedWork[] = []
      let result: Run = () => undefined
      const scene = await start(async (work) => {
        ran.push(work as TracedWork)
        return result(work)
      })
      try {
        await check(scene, ran, (run) => {
          result = run
        })
      } finally {
        await scene.close()
      }
    })
  }
  const submit = async ({ jobs }: JobsScene, told: Told = {}): Promise<{ id: string; work: TracedWork }> => {
    const work = new TracedWork(told)
    const id = await jobs.submit(work)
    if (id === undefined) throw new Error('there was no room for work')
    return { id, work }
  }
  const stateOf = async ({ jobs }: JobsScene, id: string): Promise<unknown> => (await jobs.find(id))?.state

  declare('jobs: the status has a path', async ({ jobs }) => {
    like(jobs.path, /^(\/[\w.~-]+)+$/, 'the path')
  })

  declare('jobs: ids are long, stand in a path, and do not follow from each other', async (scene) => {
    const ids: string[] = []
    for (let index = 0; index < 20; index++) ids.push((await submit(scene, { caller: `caller-${index}` })).id)
    for (const [at, id] of ids.entries()) {
      equal(isJobId(id), true, `${JSON.stringify(id)} is 16 to 128 of A-Z a-z 0-9 _ -`)
      for (const other of ids.slice(0, at)) {
        const differing = Array.from(id).filter((letter, index) => letter !== other[index]).length
        equal(differing >= 8, true, `${id} and ${other} differ in 8 characters or more`)
      }
    }
  })

  declare("jobs: what is no id, or nobody's, is not found", async ({ jobs }) => {
    for (const id of ['0'.repeat(32), 'constructor-constructor', '__proto__________', 'x'.repeat(128)]) {
      equal((await jobs.find(id)) ?? undefined, undefined, `the status of ${id}`)
    }
  })

  declare(
    'jobs: work is carried out once, with what it was submitted with, and its status says so',
    async (scene, ran, give) => {
      give(({ body }) => ({ imported: body, list: [1, null, 'é'] }))
      const { id, work } = await submit(scene, { name: 'a' })
      await eventually(() => stateOf(scene, id), 'done', 'the state')
      const status = await scene.jobs.find(id)
      equal(status?.id, id, 'the id in the status')
      equal(status?.result, { imported: { name: 'a' }, list: [1, null, 'é'] }, 'the result')
      for (const time of [status?.acceptedAt, status?.startedAt, status?.endedAt]) like(time, isoTime, 'a time')
      await eventually(() => work.overs, 1, 'how often its policies were told of its end')
      equal([ran.length, work.asked], [1, 1], 'how often it ran, and was asked for')
      await pause(whileMs)
      equal([ran.length, work.overs], [1, 1], 'how often it ran and ended, afterwards')
    },
  )

  declare('jobs: work that gives nothing is done', async (scene) => {
    const { id } = await submit(scene)
    await eventually(() => stateOf(scene, id), 'done', 'the state')
  })

  declare('jobs: work that fails is failed, says why, and is not tried again', async (scene, ran, give) => {
    give(() => Promise.reject(new Error('no such event')))
    const { id, work } = await submit(scene)
    await eventually(() => stateOf(scene, id), 'failed', 'the state')
    like((await scene.jobs.find(id))?.error, /./, 'the error')
    await eventually(() => work.overs, 1, 'how often its policies were told of its end')
    await pause(whileMs)
    equal([ran.length, work.overs], [1, 1], 'how often it ran and ended')
  })

  declare('jobs: it does not run before its policies admit it', async (scene, ran, give) => {
    give((work) => {
      if (!(work as TracedWork).admitted) throw new Error('it ran before it was admitted')
    })
    const { id, work } = await submit(scene, { waits: [20, 20, 20] })
    await eventually(() => stateOf(scene, id), 'done', 'the state')
    equal([work.asked, ran.length], [4, 1], 'how often its policies were asked, and it ran')
  })

  declare('jobs: while it may not run it is queued', async (scene, ran) => {
    const { id, work } = await submit(scene, { never: true })
    await eventually(() => work.asked > 0, true, 'its policies were asked')
    equal([await stateOf(scene, id), ran.length, work.overs], ['queued', 0, 0], 'state, runs and ends')
  })

  declare('jobs: policies that cannot be asked are asked again', async (scene, ran) => {
    const { id } = await submit(scene, { waits: [Number.NaN] })
    await eventually(() => stateOf(scene, id), 'done', 'the state')
    equal(ran.length, 1, 'how often it ran')
  })

  declare('jobs: work of a caller runs in the order in which it came', async (scene, ran) => {
    const last = await submit(scene, { name: '1', waits: [30] })
    await submit(scene, { name: '2' })
    await eventually(() => ran.length, 2, 'how many ran')
    equal(
      ran.map(({ request }) => request),
      ['1', '2'],
      'the order',
    )
    await eventually(() => stateOf(scene, last.id), 'done', 'the state')
  })

  declare('jobs: nobody waits behind the work of another caller', async (scene, ran) => {
    await submit(scene, { name: 'never', never: true })
    await submit(scene, { name: 'other', caller: 'bob' })
    await eventually(() => ran.map(({ request }) => request), ['other'], 'what ran')
  })

  declare('jobs: there is an end of its room, and others have their own', async (scene) => {
    for (let index = 0; index < scene.room; index++) await submit(scene, { never: true })
    equal(await scene.jobs.submit(new TracedWork({ never: true })), undefined, 'the id of one too many')
    await submit(scene, { caller: 'bob', never: true })
  })

  declare('jobs: after the close nothing is taken, and nothing that waits is carried out', async (scene, ran) => {
    await submit(scene, { waits: [30] })
    await submit(scene, { caller: 'bob', waits: [whileMs / 2] })
    await scene.jobs.close()
    const late = new TracedWork({})
    const id = await Promise.resolve()
      .then(() => scene.jobs.submit(late))
      .catch(() => undefined)
    equal(id, undefined, 'the id of work after the close')
    await pause(2 * whileMs)
    equal([ran.length, late.asked], [0, 0], 'how many ran, and were asked for')
  })

  declare('jobs: a guard accepts work, runs it when its limit admits it, and tells its status', async (scene, ran) => {
    const { jobs } = scene
    const rule = { algorithm: 'token-bucket', limit: 10, window: '1s', burst: 1 }
    const guard = createGuard<string>({
      policies: { version: 1, policies: { client: { per: 'client', rule, overflow: ['accept'] } } },
      identify: (client) => ({ client }),
      jobs,
    })
    const request = (method: string, target: string): GuardRequest<string> => {
      const body = (): unknown => ({ items: 2 })
      return { method, target, peer: '192.0.2.1', raw: 'ana', header: () => undefined, body }
    }
    try {
      const answers = [await guard.ask(request('POST', '/import')), await guard.ask(request('POST', '/import'))]
      equal(
        answers.map(({ answer }) => answer),
        ['pass', 'accept'],
        'the answers',
      )
      const { status, fields } = guard.answerOf(answers[1] as (typeof answers)[number])
      const location = fields[fields.indexOf('Location') + 1] ?? ''
      equal([status, location.startsWith(`${jobs.path}/`)], [202, true], 'status and place of what was accepted')
      const told = async (): Promise<unknown> => {
        const answer = guard.answerOf(await guard.ask(request('GET', location)))
        return answer.status === 200 ? (JSON.parse(String(answer.body)) as { state: unknown }).state : answer.status
      }
      await eventually(told, 'done', 'the state that callers are told')
      equal(
        ran.map(({ method, target, body }) => [method, target, body]),
        [['POST', '/import', { items: 2 }]],
        'what ran',
      )
    } finally {
      guard.close()
    }
  })
}

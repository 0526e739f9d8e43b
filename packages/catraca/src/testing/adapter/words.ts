import type { KeptAnswer, Verdict } from '../../policy/verdict.ts'
import { equal, eventually, like, pause } from '../check.ts'
import { type Declare, guardOf, type Stage, simple } from './scene.ts'

const policies = { one: { per: 'address', rule: { algorithm: 'gcra', limit: 99, window: '1h' } } }

/** What a guard wants beside letting a request pass: a word to the service, a copy of the answer, no limit in shared caches. */
export function wordTests(declare: Declare): void {
  for (const when of ['at once', 'later']) {
    declare(`the service is told, ${when}, what kind of answer is wanted; callers cannot say it`, async (stage) => {
      const { scene } = stage
      let told: Verdict['told']
      await scene.start([{ what: guardThat(stage, (verdict) => Object.assign(verdict, { told }), when) }])
      const asks = async (headers = {}) => (await scene.get('/told', headers)).body
      equal(await asks(), 'nothing', 'an ordinary request')
      equal(await asks({ 'Catraca-Answer': 'mark' }), 'nothing', 'a forged one')
      told = 'degrade'
      equal([await asks(), await asks({ 'Catraca-Answer': 'mark' })], ['degrade', 'degrade'], 'a told one')
    })
  }

  declare('an inner guard leaves what an outer one told', async (stage) => {
    const { scene, header } = stage
    const outer = guardThat(stage, (verdict) => Object.assign(verdict, { told: 'mark' }))
    const skips = header('x-skip')
    const mount = { skip: (request: never) => skips(request) === '1' }
    await scene.start([{ what: outer, mount }, { what: guardThat(stage, () => {}) }])
    equal((await scene.get('/told')).body, 'mark', 'told by the outer one')
    equal((await scene.get('/told', { 'x-skip': '1' })).body, 'nothing', 'told where the outer one is skipped')
  })

  declare('a caller who is not counted cannot say it either', async (stage) => {
    const { scene } = stage
    await scene.start([{ what: guardThat(stage, () => {}), mount: { skip: () => true } }])
    equal((await scene.get('/told', { 'Catraca-Answer': 'degrade' })).body, 'nothing', 'what a skipped caller forged')
  })

  /** A guard that keeps answers of up to so many bytes. */
  function keeping(stage: Stage, bytes: number): { guard: ReturnType<typeof guardOf>; kept: KeptAnswer[] } {
    const kept: KeptAnswer[] = []
    const keep = (answer: KeptAnswer): unknown => kept.push(answer)
    return { guard: guardThat(stage, (verdict) => Object.assign(verdict, { keep, keepBytes: bytes })), kept }
  }
  const textOf = ({ body }: KeptAnswer) => String.fromCharCode(...body)
  const count = (kept: KeptAnswer[]) => () => kept.length

  declare('a whole answer is kept once: status, fields of the handler, body', async (stage) => {
    const { guard, kept } = keeping(stage, 2)
    await stage.scene.start([simple({ limit: 99, headers: ['ietf', 'legacy'] }), { what: guard }])
    const sent = await stage.scene.get('/created')
    equal([sent.status, sent.body, sent.headers['x-own']], [201, 'ok', 'kept'], 'the answer itself')
    await eventually(count(kept), 1, 'answers kept')
    const [answer] = kept as [KeptAnswer]
    equal([answer.status, textOf(answer)], [201, 'ok'], 'status and body')
    const fields = new Map(answer.fields.map(([name, value]) => [name.toLowerCase(), value]))
    equal(fields.get('x-own'), 'kept', 'a field of the handler')
    equal(fields.get('content-type')?.startsWith('text/plain'), true, 'its Content-Type')
    const none = [
      'ratelimit',
      'ratelimit-policy',
      'ratelimit-limit',
      'content-length',
      'transfer-encoding',
      'connection',
    ]
    for (const name of none) equal(fields.has(name), false, `${name} is kept`)
    await stage.scene.get('/missing')
    await eventually(count(kept), 2, 'answers kept')
    equal(kept[1]?.status, 404, 'the status of the second')
  })

  declare('a stream is kept when it was sent whole, and is not held up', async (stage) => {
    const { guard, kept } = keeping(stage, 6)
    await stage.scene.start([{ what: guard }])
    const wire = stage.scene.wire()
    wire.send('GET', '/stream')
    await wire.head()
    equal(await wire.chunk(), 'one', 'the first part, before the second was made')
    await pause(20)
    equal(kept.length, 0, 'answers kept in the middle')
    stage.scene.open()
    equal([await wire.chunk(), await wire.chunk()], ['two', ''], 'the rest')
    await eventually(count(kept), 1, 'answers kept')
    equal(textOf(kept[0] as KeptAnswer), 'onetwo', 'the body')
  })

  declare('nothing is kept of HEAD, of longer answers, of broken ones', async (stage) => {
    const { scene } = stage
    const { guard, kept } = keeping(stage, 5)
    const whole = keeping(stage, 99)
    await scene.start([{ what: guard }, { what: whole.guard }])
    equal((await scene.ask('HEAD', '/')).status, 200, 'HEAD')
    const long = scene.wire()
    long.send('GET', '/stream')
    await long.head()
    await long.chunk()
    scene.open()
    equal([await long.chunk(), await long.chunk()], ['two', ''], 'a longer answer')
    await eventually(count(whole.kept), 1, 'answers kept that may be longer')
    for (const path of ['/breaks', '/stream']) {
      const wire = scene.wire()
      wire.send('GET', path)
      await wire.head()
      await wire.chunk()
      if (path === '/stream') await scene.leave()
      scene.open()
      await wire.over()
    }
    await pause(20)
    equal([kept.length, whole.kept.length], [0, 1], 'answers kept')
    await scene.get()
    await eventually(count(kept), 1, 'answers kept of a short one')
  })

  const bytes = Uint8Array.of(0, 255, 10, 13)
  const answers: [name: string, status: number, body: string | Uint8Array, sent: string][] = [
    ['a copy of bytes', 200, bytes, '\u0000\u00ff\n\r'],
    ['a copy of a text', 200, 'kept é', 'kept \u00c3\u00a9'],
    ['a word that it was taken', 202, '{"taken":true}', '{"taken":true}'],
    ['nothing', 204, '', ''],
  ]
  for (const [name, status, body, sent] of answers) {
    declare(`a request that does not go on can be answered with ${status}: ${name}`, async ({ scene, driver }) => {
      const guard = guardOf(driver, { one: { per: 'address', rule: { algorithm: 'gcra', limit: 1, window: '1h' } } })
      const fields = ['Content-Type', 'text/x-kept', 'X-Copy', '1', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']
      guard.answerOf = () => ({ status, fields: [...fields], body })
      await scene.start([{ what: guard }])
      await scene.get()
      const wire = scene.wire()
      for (const method of ['GET', 'HEAD', 'GET']) {
        wire.send(method, '/')
        const found = await wire.receive(method)
        equal([found.status, found.body], [status, method === 'HEAD' ? '' : sent], `the answer to ${method}`)
        equal([found.headers['x-copy'], found.headers['set-cookie']], ['1', 'a=1, b=2'], `its fields for ${method}`)
        if (status !== 204) like(found.headers['content-type'], /^text\/x-kept/, `its Content-Type for ${method}`)
      }
      equal(scene.reached, 1, 'calls of handlers')
    })
  }

  declare('cacheable: omit: an answer that caches share tells no limit', async (stage) => {
    const { scene, driver } = stage
    const guard = guardOf(driver, policies)
    Object.defineProperty(guard, 'omitsCacheable', { value: true })
    await scene.start([{ what: guard }])
    const told = async (path: string) => {
      const { headers } = await scene.get(path)
      return [headers['ratelimit'] !== undefined, headers['ratelimit-policy'] !== undefined]
    }
    for (const path of ['/public', '/shared']) equal(await told(path), [false, false], `told with ${path}`)
    for (const path of ['/private', '/', '/created']) equal(await told(path), [true, true], `told with ${path}`)
  })

  declare('without it every answer tells the limit', async (stage) => {
    await stage.scene.start([{ what: guardOf(stage.driver, policies) }])
    equal((await stage.scene.get('/public')).headers['ratelimit'] !== undefined, true, 'told with /public')
  })
}

/** A guard whose verdicts are changed before the adapter sees them. */
function guardThat(stage: Stage, change: (verdict: Verdict) => unknown, when = 'at once'): ReturnType<typeof guardOf> {
  // By the guard itself, whose promises are of its own realm.
  const identify = () => (when === 'later' ? Promise.resolve(undefined) : undefined)
  const guard = guardOf(stage.driver, policies, { identify })
  const ask = guard.ask.bind(guard)
  const changed = (verdict: Verdict): Verdict => {
    change(verdict)
    return verdict
  }
  guard.ask = (request) => {
    const verdict = ask(request)
    return 'then' in verdict ? verdict.then(changed) : changed(verdict)
  }
  return guard
}

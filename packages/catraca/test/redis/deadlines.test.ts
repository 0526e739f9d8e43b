import { stat } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Deadlines, type Waiting } from '../../src/stores/deadlines.ts'
import { Calls, PromisedCall } from '../../src/stores/redis/calls.ts'
import type { Connection, Wire } from '../../src/stores/redis/client.ts'
import { StoreFault } from '../../src/stores/remote.ts'

class Waits implements Waiting {
  done = false
  dueMs = 0
  next: Waiting | undefined = undefined
  expired = false

  expire(): void {
    this.expired = true
  }
}

/** Keeps this process from doing anything else. */
function standStill(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

test('what is not answered in time is given up, in the order in which it was sent', async () => {
  const deadlines = new Deadlines(30, () => {})
  const all = [new Waits(), new Waits(), new Waits()]
  for (const one of all) deadlines.add(one)
  const [first, , last] = all as [Waits, Waits, Waits]
  first.done = true
  deadlines.forget()
  await expect.poll(() => last.expired).toBe(true)
  expect(all.map(({ expired }) => expired)).toEqual([false, true, true])
})

test('an answer that had arrived when its time ended is read before it counts as late', async () => {
  const pauses: number[] = []
  const deadlines = new Deadlines(1_000, (pauseMs) => pauses.push(pauseMs))
  const one = new Waits()
  deadlines.add(one)
  await sleep(700)
  // Its answer comes while this process stands still past the end, for less than counts as a pause.
  await new Promise<void>((resolve) => {
    // Timers come before what has arrived only after a phase other than their own.
    setImmediate(() => {
      stat('.', () => {
        one.done = true
        resolve()
      })
      standStill(500)
    })
  })
  await sleep(100)
  expect([one.expired, pauses]).toEqual([false, []])
})

test('after a pause of this process everything gets its time anew, and the pause is told', async () => {
  const pauses: number[] = []
  const deadlines = new Deadlines(500, (pauseMs) => pauses.push(pauseMs))
  const one = new Waits()
  deadlines.add(one)
  standStill(1_200)
  await sleep(20)
  expect(one.expired).toBe(false)
  expect(pauses).toHaveLength(1)
  expect(pauses[0]).toBeGreaterThan(500)
  await expect.poll(() => one.expired, { timeout: 5_000 }).toBe(true)
})

/** A client that is in one state and notes what is sent through it. */
function wireThatIs(connection: () => Connection): { wire: Wire; sent: string[] } {
  const sent: string[] = []
  const send = async (sha: string): Promise<unknown> => {
    sent.push(sha)
    return 1
  }
  const wire = {
    cluster: false,
    writesPerTurn: false,
    evalsha: send,
    eval: send,
    reconnect() {},
    onReady: () => () => {},
  }
  Object.defineProperty(wire, 'connection', { get: connection })
  return { wire: wire as unknown as Wire, sent }
}

const script = { sha: 'sha', text: 'text' }

test('nothing is sent through a client that reconnects or is closed: the call fails at once', async () => {
  const { wire, sent } = wireThatIs(() => 'away')
  const call = new PromisedCall(script, ['k'], [])
  new Calls(wire, 10_000, () => {}).send(call)
  await expect(call.promise).rejects.toEqual(new StoreFault('gone', 'the client of the store is not connected'))
  expect(sent).toEqual([])
})

test('a client that connects for the first time is waited for, and the call is held here', async () => {
  let connection: Connection = 'connecting'
  const { wire, sent } = wireThatIs(() => connection)
  const calls = new Calls(wire, 10_000, () => {})
  const call = new PromisedCall(script, ['k'], [])
  calls.send(call)
  await sleep(20)
  expect(sent).toEqual([])
  connection = 'ready'
  expect(await call.promise).toBe(1)
  expect(sent).toEqual(['sha'])
})

test('a client that cannot connect makes what was held for it fail', async () => {
  let connection: Connection = 'connecting'
  const { wire, sent } = wireThatIs(() => connection)
  const call = new PromisedCall(script, ['k'], [])
  new Calls(wire, 10_000, () => {}).send(call)
  connection = 'away'
  await expect(call.promise).rejects.toMatchObject({ kind: 'gone' })
  expect(sent).toEqual([])
})

import { Refusal, sendJson } from '../lib/answers.mjs'
import { readObject } from '../lib/body.mjs'
import { eventOf, events, seatsPerEvent } from '../lib/events.mjs'
import { Holds } from '../lib/holds.mjs'
import { serve } from '../lib/service.mjs'

const lastsMs = 5 * 60_000
const seatsPerHold = 10
const printEveryMs = 1_000

const holds = new Holds({ seatsPerEvent, lastsMs })
let calls = 0
let printed = 0
let printer

serve('inventory', {
  'POST /api/holds': hold,
  'GET /api/holds/count': ({ response }) => sendJson(response, 200, { calls, held: holds.total }),
})
process.once('exit', print)

/** Takes seats of an event for five minutes. */
async function hold({ request, response }) {
  // Every call that came this far counts, also one that is refused.
  calls += 1
  printer ??= setTimeout(print, printEveryMs).unref()
  const { eventId, seats = 1 } = await readObject(request)
  if (!Number.isSafeInteger(eventId)) throw new Refusal(422, 'eventId is to be the number of an event.')
  if (!Number.isSafeInteger(seats) || seats < 1 || seats > seatsPerHold)
    throw new Refusal(422, `seats is to be 1 to ${seatsPerHold}; without it one is taken.`)
  if (eventOf(eventId) === undefined) throw new Refusal(404, `There are events 1 to ${events.length}.`)
  const taken = holds.take(eventId, seats)
  const seatsLeft = holds.seatsLeft(eventId)
  if (taken === undefined) throw new Refusal(409, `The event has too few seats left: ${seatsLeft}.`)
  const expiresAt = new Date(Date.now() + lastsMs).toISOString()
  sendJson(response, 201, { holdId: taken.id, eventId, seats, seatsLeft, expiresAt })
}

/** Says how many calls came, when it is not what was said last. */
function print() {
  printer = undefined
  if (calls === printed) return
  printed = calls
  process.stdout.write(`inventory: ${calls} calls reached it\n`)
}

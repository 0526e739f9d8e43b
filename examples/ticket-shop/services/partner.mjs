import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal, sendJson } from '../lib/answers.mjs'
import { readObject } from '../lib/body.mjs'
import { eventOf, events } from '../lib/events.mjs'
import { sales } from '../lib/sales.mjs'
import { search } from '../lib/search.mjs'
import { serve } from '../lib/service.mjs'

// What partners call. Each route has its own answer to an excess at the edge, which tells the service of two of them.
serve('partner', {
  'GET /partner/seats/:event': seats,
  'POST /partner/search': searchEvents,
  'GET /partner/sales': salesOf,
  'POST /partner/imports': importBatch,
  'POST /partner/checkout': ({ response }) => sendJson(response, 201, { checkoutId: randomUUID() }),
  'GET /partner/offers': offers,
})

/** How an excess is answered with less: the edge says so, and no caller can. */
function isDegraded({ headers }) {
  return headers['catraca-answer'] === 'degrade'
}

/** Seats that are left, which may be some seconds old. */
function seats({ params, response }) {
  const event = /^[1-9]\d{0,5}$/.test(params.event) ? eventOf(Number(params.event)) : undefined
  if (event === undefined) throw new Refusal(404, `There are events 1 to ${events.length}.`)
  sendJson(response, 200, { eventId: event.id, seatsLeft: event.seats, countedAt: new Date().toISOString() })
}

/** A search; degraded without the fields that are worked out from all events. */
async function searchEvents({ request, response }) {
  const degraded = isDegraded(request)
  const found = search({ ...(await readObject(request)), ...(degraded && { derived: false }) })
  sendJson(response, 200, { degraded, ...found })
}

/** Sales by day; degraded by month. */
function salesOf({ request, response }) {
  const degraded = isDegraded(request)
  sendJson(response, 200, { degraded, by: degraded ? 'month' : 'day', items: sales(degraded ? 'month' : 'day') })
}

/** Reads a batch. It takes its time. */
async function importBatch({ request, response }) {
  const { items } = await readObject(request)
  if (!Array.isArray(items) || items.length === 0) throw new Refusal(422, 'items is to be a list of at least one.')
  await sleep(100)
  sendJson(response, 200, { batchId: randomUUID(), items: items.length, status: 'imported' })
}

/** Offers for everybody; who is over the limit gets them too, and it is noted. */
function offers({ request, response }) {
  const overLimit = request.headers['catraca-answer'] === 'mark'
  sendJson(response, 200, { overLimit, items: events.slice(0, 3).map(({ id, title }) => ({ eventId: id, title })) })
}

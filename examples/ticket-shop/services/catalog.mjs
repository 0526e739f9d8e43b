import { createHash } from 'node:crypto'
import { Refusal, send } from '../lib/answers.mjs'
import { eventOf, events } from '../lib/events.mjs'
import { asset, page } from '../lib/page.mjs'
import { serve } from '../lib/service.mjs'

const pageSize = 20
const home = page(events)

serve('catalog', {
  'GET /': (call) => sendCached(call, 'text/html; charset=utf-8', home),
  'GET /assets/:name': sendAsset,
  'GET /events': list,
  'GET /events/:id': one,
})

/** One page of events, of one city if asked, with the way to the next. */
function list(call) {
  const city = call.query.get('city')
  const found = city === null ? events : events.filter((event) => event.city.toLowerCase() === city.toLowerCase())
  const pages = Math.max(1, Math.ceil(found.length / pageSize))
  const text = call.query.get('page') ?? '1'
  const number = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (number < 1 || number > pages)
    throw new Refusal(400, pages === 1 ? 'There is page 1 only.' : `There are pages 1 to ${pages}.`)
  const next = number < pages ? `/events?${new URLSearchParams({ ...(city && { city }), page: number + 1 })}` : null
  const items = found.slice((number - 1) * pageSize, number * pageSize)
  sendCachedJson(call, { page: number, pages, total: found.length, next, items })
}

function one(call) {
  const { id } = call.params
  const event = /^[1-9]\d*$/.test(id) ? eventOf(Number(id)) : undefined
  if (event === undefined) throw new Refusal(404, `There are events 1 to ${events.length}.`)
  sendCachedJson(call, event)
}

function sendAsset(call) {
  const found = asset(call.params.name)
  if (found === undefined) throw new Refusal(404, 'The page has no such file.')
  sendCached(call, found.type, found.text)
}

function sendCachedJson(call, body) {
  sendCached(call, 'application/json', `${JSON.stringify(body)}\n`)
}

/**
 * Answers with a tag, or with 304 when the caller has it already. Caches keep the answer and ask each time: a second
 * load of the page is as many calls as the first.
 */
function sendCached({ request, response }, type, text) {
  const tag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 16)}"`
  const headers = { ETag: tag, 'Cache-Control': 'no-cache' }
  const had = request.headers['if-none-match']?.split(',').map((entry) => entry.trim().replace(/^W\//, '')) ?? []
  if (had.includes(tag) || had.includes('*')) response.writeHead(304, headers).end()
  else send(response, 200, type, text, headers)
}

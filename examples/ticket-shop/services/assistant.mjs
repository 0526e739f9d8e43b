import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal, sendJson } from '../lib/answers.mjs'
import { readObject } from '../lib/body.mjs'
import { serve } from '../lib/service.mjs'

const longestQuestion = 1_000
const shortestMs = 300
const longestMs = 800
const sentences = [
  'Doors open an hour before the start.',
  'Seats are given in the order of the holds.',
  'A hold lasts five minutes.',
  'Children under six enter free.',
  'Tickets can be returned until the day before.',
  'The venue is a short walk from the station.',
  'Every seat has a good view.',
  'Refreshments are sold in the foyer.',
]

/** What became of the questions. */
const work = { running: 0, finished: 0, stopped: 0 }

serve('assistant', {
  'POST /assistant/ask': ask,
  'GET /assistant/work': ({ response }) => sendJson(response, 200, work),
})

/** Streams an answer, a sentence at a time. */
async function ask({ request, response }) {
  const { question } = await readObject(request)
  if (typeof question !== 'string' || question.trim() === '' || question.length > longestQuestion)
    throw new Refusal(422, `question is to be a text of 1 to ${longestQuestion} characters.`)
  const { tookMs, chunks } = think(question)
  const form = wantsPlain(request) ? plain : events
  // Nobody reads on: the work ends with the connection.
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  work.running += 1
  try {
    response.writeHead(200, { 'Content-Type': form.type, 'Cache-Control': 'no-store' })
    response.flushHeaders()
    for (const chunk of chunks) {
      await sleep(tookMs / chunks.length, undefined, { signal: gone.signal })
      response.write(form.chunk(chunk))
    }
    response.end(form.end)
    work.finished += 1
  } catch (error) {
    if (!gone.signal.aborted) throw error
    work.stopped += 1
  } finally {
    work.running -= 1
  }
}

const plain = { type: 'text/plain; charset=utf-8', chunk: (text) => `${text}\n`, end: '' }
const events = {
  type: 'text/event-stream',
  chunk: (text) => `data: ${JSON.stringify({ text })}\n\n`,
  end: 'event: done\ndata: {}\n\n',
}

function wantsPlain({ headers: { accept = '' } }) {
  return accept.includes('text/plain') && !accept.includes(events.type)
}

/** What is answered and how long that takes: the same for the same question. */
function think(question) {
  const seed = createHash('sha256').update(question).digest()
  const tookMs = shortestMs + (seed.readUInt32BE(0) % (longestMs - shortestMs + 1))
  const first = seed.readUInt32BE(4) % sentences.length
  const count = 4 + (seed.readUInt32BE(8) % 3)
  const chunks = Array.from({ length: count }, (_, index) => sentences[(first + index) % sentences.length])
  return { tookMs, chunks }
}

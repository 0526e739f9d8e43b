import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Refusal, sendJson } from '../lib/answers.mjs'
import { readObject } from '../lib/body.mjs'
import { csv, reports } from '../lib/reports.mjs'
import { search } from '../lib/search.mjs'
import { serve } from '../lib/service.mjs'

// Two cheap reads, and the three dear routes that have a scope of their own.
serve('reports', {
  'GET /v1/relatorios': ({ response }) => sendJson(response, 200, { total: reports.length, items: reports }),
  'GET /v1/relatorios/:id': ({ params, response }) => sendJson(response, 200, reportOf(params.id)),
  'GET /v1/relatorios/:id/exportar': exportCsv,
  'POST /v1/buscas/avancada': async ({ request, response }) =>
    sendJson(response, 200, search(await readObject(request))),
  'POST /v1/lotes/importar': importBatch,
})

/** Streams the report as fast as the caller reads it, and stops when the caller leaves. */
async function exportCsv({ request, response, params }) {
  const report = reportOf(params.id)
  response.writeHead(200, {
    'Content-Type': 'text/csv; charset=utf-8; header=present',
    'Content-Disposition': `attachment; filename="sales-${report.month}.csv"`,
  })
  if (request.method === 'HEAD') response.end()
  else await pipeline(Readable.from(csv(report)), response)
}

/** Takes a batch for later. Here it is only counted. */
async function importBatch({ request, response }) {
  const { items } = await readObject(request)
  if (!Array.isArray(items) || items.length === 0) throw new Refusal(422, 'items is to be a list of at least one.')
  sendJson(response, 202, { batchId: randomUUID(), items: items.length, status: 'accepted' })
}

function reportOf(id) {
  const report = /^[1-9]\d?$/.test(id) ? reports[Number(id) - 1] : undefined
  if (report === undefined) throw new Refusal(404, `There are reports 1 to ${reports.length}.`)
  return report
}

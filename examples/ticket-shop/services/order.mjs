import { randomUUID } from 'node:crypto'
import { Refusal, sendJson } from '../lib/answers.mjs'
import { readObject } from '../lib/body.mjs'
import { serve } from '../lib/service.mjs'
import { verify } from '../lib/users.mjs'

/** So many orders are remembered; then the oldest is forgotten, or a long load would fill the memory. */
const remembered = 50_000
const longestText = 200

/** @type {Map<string, { orderId: string, holdId: string, status: 'created' | 'charged', createdAt: string, chargeId?: string }>} */
const orders = new Map()

serve('order', {
  'POST /login': login,
  'POST /orders': create,
  'GET /orders/:id': ({ params, response }) => sendJson(response, 200, orderOf(params.id)),
  'POST /charges': charge,
})

async function login({ request, response }) {
  const body = await readObject(request)
  if (!(await verify(text(body, 'user'), text(body, 'password')))) throw new Refusal(401, 'User or password is wrong.')
  response.writeHead(204).end()
}

/** Makes an order of a hold. Whether there is such a hold is not asked: each service runs alone. */
async function create({ request, response }) {
  const holdId = text(await readObject(request), 'holdId')
  const order = { orderId: randomUUID(), holdId, status: 'created', createdAt: new Date().toISOString() }
  orders.set(order.orderId, order)
  if (orders.size > remembered) orders.delete(orders.keys().next().value)
  sendJson(response, 201, order, { Location: `/orders/${order.orderId}` })
}

/** Charges an order, once. */
async function charge({ request, response }) {
  const order = orderOf(text(await readObject(request), 'orderId'))
  if (order.status === 'charged') throw new Refusal(409, 'The order is charged already.')
  order.status = 'charged'
  order.chargeId = randomUUID()
  sendJson(response, 201, { chargeId: order.chargeId, orderId: order.orderId, status: order.status })
}

function orderOf(id) {
  const order = orders.get(id)
  if (order === undefined) throw new Refusal(404, 'There is no such order.')
  return order
}

function text(body, name) {
  const value = body[name]
  if (typeof value !== 'string' || value === '' || value.length > longestText)
    throw new Refusal(422, `${name} is to be a text of 1 to ${longestText} characters.`)
  return value
}

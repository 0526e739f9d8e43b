import { Refusal } from './answers.mjs'
import { events } from './events.mjs'

const orders = {
  date: (one, other) => one.startsAt.localeCompare(other.startsAt),
  price: (one, other) => one.priceCents - other.priceCents,
  title: (one, other) => one.title.localeCompare(other.title),
}

/** The fields of a search with what they may be. All can be left out; others are not known. */
const fields = {
  text: [(value) => typeof value === 'string' && value.length <= 200, 'a text of at most 200 characters'],
  cities: [(value) => Array.isArray(value) && value.every((city) => typeof city === 'string'), 'a list of names'],
  maxPriceCents: [(value) => Number.isSafeInteger(value) && value >= 0, 'a whole number'],
  sort: [(value) => typeof value === 'string' && Object.hasOwn(orders, value), Object.keys(orders).join(', ')],
  limit: [(value) => Number.isSafeInteger(value) && value >= 1 && value <= 100, '1 to 100'],
  derived: [(value) => typeof value === 'boolean', 'true or false'],
}

/**
 * Searches the events. The derived fields are what makes it dear; `derived: false` leaves them out.
 * @param {Record<string, unknown>} query
 */
export function search(query) {
  for (const [name, value] of Object.entries(query)) {
    if (!Object.hasOwn(fields, name))
      throw new Refusal(422, `A search has no such field; it has ${Object.keys(fields).join(', ')}.`)
    const [isAllowed, words] = fields[name]
    if (!isAllowed(value)) throw new Refusal(422, `${name} is to be ${words}.`)
  }
  const { text = '', cities, maxPriceCents = Infinity, sort = 'date', limit = 20, derived = true } = query
  const found = events
    .filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()))
    .filter(({ city }) => cities?.includes(city) ?? true)
    .filter(({ priceCents }) => priceCents <= maxPriceCents)
    .toSorted(orders[sort])
  const items = found.slice(0, limit).map((event) => (derived ? { ...event, ...derive(event) } : event))
  return { total: found.length, derived, items }
}

/** What is worked out from all events for each one found. */
function derive(event) {
  const weekday = new Date(event.startsAt).toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' })
  const cheaper = events.filter(({ priceCents }) => priceCents < event.priceCents).length
  const similar = events
    .filter(({ id }) => id !== event.id)
    .map((other) => ({ id: other.id, distance: distance(event, other) }))
    .toSorted((one, other) => one.distance - other.distance || one.id - other.id)
    .slice(0, 3)
    .map(({ id }) => id)
  return { weekday, cheaperPercent: Math.round((100 * cheaper) / events.length), similar }
}

/** Small for events of the same words, city and price. */
function distance(event, other) {
  const words = new Set(event.title.split(' '))
  const others = other.title.split(' ').filter((word) => !words.has(word)).length
  return others + (event.city === other.city ? 0 : 2) + Math.abs(event.priceCents - other.priceCents) / 1_000
}

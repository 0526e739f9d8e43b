/**
 * @typedef {object} Event
 * @property {number} id From 1.
 * @property {string} title
 * @property {string} city
 * @property {string} venue
 * @property {string} startsAt Time in UTC.
 * @property {number} priceCents
 * @property {number} seats How many there are; how many are left is known to the inventory.
 */

const kinds = [
  'Jazz night',
  'Poetry reading',
  'Film club',
  'Chamber concert',
  'Science talk',
  'Dance workshop',
  'Book fair',
]
const themes = ['under the stars', 'by the river', 'for beginners', 'in the old market', 'with friends', 'before dawn']
const places = [
  { city: 'Lisbon', venue: 'Harbour Hall' },
  { city: 'Recife', venue: 'Bridge Theatre' },
  { city: 'Porto', venue: 'Granite House' },
  { city: 'Salvador', venue: 'Upper Town Stage' },
  { city: 'Luanda', venue: 'Bay Pavilion' },
]
/** In every event. */
export const seatsPerEvent = 100

const first = Date.UTC(2027, 0, 8, 19)
const day = 86_400_000

/**
 * The same events every time: lists of different lengths repeat against each other.
 * @type {readonly Event[]}
 */
export const events = Array.from({ length: 200 }, (_, index) => ({
  id: index + 1,
  title: `${kinds[index % kinds.length]} ${themes[index % themes.length]}`,
  ...places[index % places.length],
  startsAt: new Date(first + index * day).toISOString(),
  priceCents: 1_500 + ((index * 7) % 24) * 250,
  seats: seatsPerEvent,
}))

/**
 * The event of that number, if there is one.
 * @param {number} id
 * @returns {Event | undefined}
 */
export function eventOf(id) {
  return events[id - 1]
}

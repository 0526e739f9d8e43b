import { validateHeaderName, validateHeaderValue } from 'node:http'
import { parseArgs } from 'node:util'

export const help = `Sends requests at a fixed rate to a program on this machine, whether or not the answers keep up.

  node examples/ticket-shop/load.mjs --rate 500 --seconds 10 --path /events

  --rate N               requests per second (default 50)
  --seconds N            for how long (default 10)
  --method NAME          default GET
  --path PATH            default /; {n} becomes 1, 2, … 199, 1, …
  --key KEY              sent as X-API-Key
  --header 'Name: value' may be given several times
  --body TEXT            sent as JSON unless a header says otherwise; {n} as in the path
  --url URL              default http://127.0.0.1:8080; loopback only
  --json                 the result as one JSON object
  --help                 this text

Examples:
  the script that hammers the holds, with a key
    node examples/ticket-shop/load.mjs --rate 500 --seconds 10 --method POST --path /api/holds \\
      --key KEY --body '{"eventId":{n}}'
  five logins per second, from the same user
    node examples/ticket-shop/load.mjs --rate 5 --seconds 4 --method POST --path /login \\
      --body '{"user":"ana","password":"wrong"}'
  reads of all events, straight to the catalog
    node examples/ticket-shop/load.mjs --rate 100 --seconds 2 --path '/events/{n}' --url http://127.0.0.1:4001
`

const flags = {
  rate: { type: 'string', default: '50' },
  seconds: { type: 'string', default: '10' },
  method: { type: 'string', default: 'GET' },
  path: { type: 'string', default: '/' },
  key: { type: 'string' },
  header: { type: 'string', multiple: true, default: [] },
  body: { type: 'string' },
  url: { type: 'string', default: 'http://127.0.0.1:8080' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
}
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const loopback = ['127.0.0.1', '[::1]', 'localhost']
/** More would be kept in memory before the first is sent. */
const mostRequests = 1_000_000

/** A flag that is not understood; the message is for the one who typed it. */
export class UsageError extends Error {}

/**
 * What the command line asks for.
 * @param {readonly string[]} args
 */
export function parseOptions(args) {
  const values = parse(args)
  if (values.help) return { help: true }
  const rate = positive('rate', values.rate)
  const seconds = positive('seconds', values.seconds)
  const count = Math.round(rate * seconds)
  if (count < 1 || count > mostRequests)
    throw new UsageError(`--rate times --seconds is ${count} requests; allowed: 1 to ${mostRequests}`)
  const method = values.method.toUpperCase()
  if (!methods.includes(method))
    throw new UsageError(`--method is "${String(values.method)}"; allowed: ${methods.join(', ')}`)
  if (!/^\/[\x21-\x7e]*$/.test(values.path))
    throw new UsageError(`--path is "${String(values.path)}"; allowed: a path from / without spaces`)
  const { url, path, body, json } = { ...values, url: target(values.url) }
  return { rate, count, method, url, path, body, headers: headersOf(values), json }
}

function parse(args) {
  try {
    return parseArgs({ args: [...args], options: flags, strict: true, allowPositionals: false }).values
  } catch (error) {
    // The first sentence names the flag; the others explain how any program reads flags.
    throw new UsageError(error.message.split(/\.\s/)[0].replaceAll('\n', ' '))
  }
}

function positive(name, text) {
  const value = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || value <= 0)
    throw new UsageError(`--${name} is "${text}"; allowed: a number above 0`)
  return value
}

/** Only this machine: a load on somebody else's is an attack. */
function target(text) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:') throw new UsageError(`--url is "${text}"; allowed: as in http://127.0.0.1:8080`)
  if (!loopback.includes(url.hostname))
    throw new UsageError(`--url is "${text}"; the load goes to this machine only: 127.0.0.1, ::1 or localhost`)
  if (url.href !== `${url.origin}/`)
    throw new UsageError(`--url is "${text}"; the rest of the address goes into --path`)
  return url
}

function headersOf({ header, key, body }) {
  const headers = {}
  for (const line of header) {
    const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(line) ?? []
    if (name === undefined) throw new UsageError(`--header is "${line}"; allowed: as in 'Name: value'`)
    if (/^(content-length|transfer-encoding|connection)$/i.test(name))
      throw new UsageError(`--header cannot set ${name}, which the load generator sets itself`)
    headers[name.toLowerCase()] = valid('header', name, value)
  }
  if (key !== undefined) headers['x-api-key'] = valid('key', 'x-api-key', key)
  if (body !== undefined) headers['content-type'] ??= 'application/json'
  return headers
}

function valid(flag, name, value) {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return value
  } catch {
    throw new UsageError(`--${flag} has a character that no header may have`)
  }
}

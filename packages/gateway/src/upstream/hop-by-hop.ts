/** Fields about one connection and not the message (RFC 9110 §7.6.1), and those that played that part before it. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** A sender must not be able to take the frame off its own message. */
const neverDropped: ReadonlySet<string> = new Set(['content-length'])
const none: ReadonlySet<string> = new Set()

/** True for the lower-case name of a field that ends at this hop: one of the known, or one in `named`. */
export function endsHere(name: string, named: ReadonlySet<string>): boolean {
  return hopByHop.has(name) || (named.size > 0 && named.has(name))
}

/** The lower-case names of the fields that a `Connection` field lists; repeated fields come as an array. */
export function namedByConnection(connection: string | readonly string[] | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return none
  const names = String(connection)
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
  return new Set(names.filter((name) => !neverDropped.has(name)))
}

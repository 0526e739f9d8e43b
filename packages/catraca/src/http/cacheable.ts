/**
 * True for an answer that shared caches may keep for others too, by its `Cache-Control`: `public` or `s-maxage` without
 * `no-store` or `private`. What it says of one caller's limit would then be told to all.
 *
 * An answer that says nothing, or only `max-age`, may be kept as well where no credential was sent; it is not meant here,
 * since most answers say nothing.
 */
export function isPubliclyCacheable(cacheControl: string | undefined): boolean {
  if (cacheControl === undefined || cacheControl === '') return false
  let shared = false
  for (const directive of cacheControl.split(',')) {
    const end = directive.indexOf('=')
    const name = (end < 0 ? directive : directive.slice(0, end)).trim().toLowerCase()
    // With or without field names: a cache may take `private="Set-Cookie"` for `private`.
    if (name === 'no-store' || name === 'private') return false
    if (name === 'public' || name === 's-maxage') shared = true
  }
  return shared
}

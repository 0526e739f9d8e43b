/** The origin (`scheme://host:port`) that `text` names; undefined for anything that is more or less than an origin. */
export function parseOrigin(text: string): string | undefined {
  if (!/^https?:\/\/[^\s/]/i.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const bare = url.pathname === '/' && !/[?#]/.test(text) && url.username === '' && url.password === ''
  return bare ? url.origin : undefined
}

/**
 * The path and query to ask the upstream for, byte for byte as the caller sent them. The absolute form (`GET http://…`)
 * loses its origin. Undefined for `*`, which is about a server and not a resource.
 */
export function originForm(target: string): string | undefined {
  if (target.startsWith('/')) return target
  const rest = /^https?:\/\/[^/?#]*(.*)$/i.exec(target)?.[1]
  if (rest === undefined) return undefined
  return rest.startsWith('/') ? rest : `/${rest}`
}

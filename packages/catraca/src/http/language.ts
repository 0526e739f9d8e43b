import type { Language } from '../policy/words.ts'

/** What `Accept-Language` can choose among. */
export const languages: readonly Language[] = ['en', 'pt']

/** Members that are looked at; more are no browser's. */
const maxMembers = 32
const weight = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/**
 * The language that a caller reads best (RFC 9110, section 12.5.4): the one with the greatest weight, of equal ones the
 * one named first, `fallback` where only `*` says so. A range counts for all of its language, `pt-BR` for `pt`. Members
 * that are malformed are passed over. Where nothing is left, or nothing that is written here: `fallback`.
 */
export function languageFor(acceptLanguage: string | undefined, fallback: Language): Language {
  if (acceptLanguage === undefined) return fallback
  const weights = new Map<string, number>()
  for (const member of acceptLanguage.split(',', maxMembers)) {
    const read = memberOf(member)
    if (read === undefined) continue
    const [language, q] = read
    weights.set(language, Math.max(q, weights.get(language) ?? 0))
  }
  const places = [...weights.keys()]
  const scoreOf = (language: Language): [q: number, place: number] => {
    const q = weights.get(language)
    return q === undefined ? [weights.get('*') ?? 0, Infinity] : [q, places.indexOf(language)]
  }
  let best = fallback
  let [most, place] = scoreOf(fallback)
  for (const language of languages) {
    const [q, at] = scoreOf(language)
    if (q < most || q === 0 || (q === most && at >= place)) continue
    best = language
    most = q
    place = at
  }
  return best
}

/** The primary language of a member, in lower case, and its weight. */
function memberOf(member: string): [language: string, q: number] | undefined {
  const [range = '', parameter, ...more] = member.split(';').map((part) => part.trim())
  const primary = range.split('-', 1)[0]?.toLowerCase() ?? ''
  if (more.length > 0 || !/^(?:[a-z]{1,8}|\*)$/.test(primary)) return undefined
  if (parameter === undefined) return [primary, 1]
  const [name, value = ''] = parameter.split('=').map((part) => part.trim())
  return name?.toLowerCase() === 'q' && weight.test(value) ? [primary, Number(value)] : undefined
}

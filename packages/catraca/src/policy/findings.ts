import { type CheckCode, helpPage } from '../core/errors.ts'
import { checks } from './checks.ts'
import type { Policies } from './policy.ts'
import { type Place, placeText } from './shape.ts'

/** Something in a document that can be enforced but is probably not meant. */
export interface Finding {
  readonly code: CheckCode
  /** `warning`: likely a mistake. `note`: worth knowing. */
  readonly level: 'warning' | 'note'
  /** Where in the document, as text. */
  readonly path: string
  readonly place: Place
  /** What is found and what to do, in one or two sentences. */
  readonly message: string
  /** The page that explains the check. */
  readonly help: string
}

/** What is known of the service beyond the policy document. */
export interface CheckContext {
  /** True when callers can be verified, as with API keys at the edge. */
  readonly authenticated?: boolean
}

/**
 * What the checks find in a document, warnings first. A check that the document switches off (`checks: { CODE: off }`)
 * says nothing. Each has a page: docs/errors.
 */
export function findingsOf(policies: Policies, context: CheckContext = {}): Finding[] {
  const off = new Set(
    Object.entries(policies.document.checks ?? {}).flatMap(([code, state]) => (state === 'off' ? [code] : [])),
  )
  const found = checks.flatMap(({ code, run }) => {
    if (off.has(code)) return []
    return run(policies, context).map(({ level, place, message }): Finding => {
      return { code, level, path: placeText(place), place, message, help: helpPage(code) }
    })
  })
  return found.toSorted((a, b) => (a.level === b.level ? 0 : a.level === 'warning' ? -1 : 1))
}

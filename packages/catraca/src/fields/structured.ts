import { CatracaError, show } from '../core/errors.ts'

/** A bare item of structured fields (RFC 9651): String, Integer or Byte Sequence. */
export type BareItem = string | number | Uint8Array

/** The largest Integer: 15 digits. Larger figures are to be clamped to it before. */
export const maxInteger = 999_999_999_999_999

/**
 * An Item with parameters, as in `"per-user";q=20;w=1`; parameters that are undefined are left out. Throws
 * `CATRACA_OPTION_INVALID` for what the grammar cannot carry.
 */
export function item(value: BareItem, parameters: Readonly<Record<string, BareItem | undefined>> = {}): string {
  let text = bare(value)
  for (const [key, parameter] of Object.entries(parameters)) {
    if (parameter === undefined) continue
    if (!/^[a-z*][a-z0-9_.*-]*$/.test(key)) throw invalid(key, 'a key of lower-case letters, digits, _ - . and *')
    text += `;${key}=${bare(parameter)}`
  }
  return text
}

/** A List of Items that are text already. A field whose List is empty is not to be sent. */
export function list(items: readonly string[]): string {
  return items.join(', ')
}

function bare(value: BareItem): string {
  if (typeof value === 'number') {
    if (Number.isInteger(value) && Math.abs(value) <= maxInteger) return String(value === 0 ? 0 : value)
    throw invalid(value, 'a whole number of at most 15 digits')
  }
  if (typeof value === 'string') {
    if (/^[ -~]*$/.test(value)) return `"${value.replaceAll(/["\\]/g, '\\$&')}"`
    throw invalid(value, 'printable ASCII')
  }
  return `:${base64(value)}:`
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Base64 with padding (RFC 4648 section 4), written out because the library also runs where neither Buffer nor btoa is. */
function base64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at
    const triple = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
    for (let digit = 0; digit < 4; digit++) {
      text += digit > left ? '=' : alphabet[(triple >> (18 - 6 * digit)) & 63]
    }
  }
  return text
}

function invalid(value: unknown, allowed: string): CatracaError {
  const path = 'structured field'
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} holds ${show(value)}; allowed: ${allowed}`, {
    path,
    value,
  })
}

import { CatracaError, show } from '../core/errors.ts'
import { ipv4Bits, ipv6Groups, mappedBits, masked } from './address.ts'

/** Addresses of one network: IPv4 as `bits`, IPv6 as `groups`. */
type Network =
  | { readonly bits: number; readonly prefix: number; readonly groups?: undefined }
  | { readonly groups: readonly number[]; readonly prefix: number; readonly bits?: undefined }

/**
 * Addresses and networks such as `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.7`. An IPv4 address inside IPv6
 * (`::ffff:10.1.2.3`) is the IPv4 address, in the list and in what is asked; an IPv6 network holds no other IPv4 address,
 * not even `::/0`. Bits after the prefix do not count. Cost of asking: one comparison per entry.
 */
export class AddressList {
  private readonly ipv4: { readonly base: number; readonly size: number }[] = []
  private readonly ipv6: { readonly groups: readonly number[]; readonly prefix: number }[] = []

  /**
   * @param entries Addresses and networks.
   * @param path Path of the list in the configuration. An entry that is none throws `CATRACA_OPTION_INVALID` with it.
   */
  constructor(entries: readonly string[], path: string) {
    if (!Array.isArray(entries)) throw invalid(entries, path)
    for (const [index, entry] of entries.entries()) {
      const network = parse(entry)
      if (network === undefined) throw invalid(entry, `${path}[${index}]`)
      if (network.groups === undefined) {
        const size = 2 ** (32 - network.prefix)
        this.ipv4.push({ base: Math.floor(network.bits / size), size })
      } else {
        this.ipv6.push({ groups: masked(network.groups, network.prefix), prefix: network.prefix })
      }
    }
  }

  /** True when the text is an address of the list; false for any other text. Never throws. */
  has(text: string): boolean {
    const bits = ipv4Bits(text)
    if (bits !== -1) return this.hasBits(bits)
    const groups = ipv6Groups(text)
    if (groups === undefined) return false
    const mapped = mappedBits(groups)
    if (mapped !== -1) return this.hasBits(mapped)
    for (const network of this.ipv6) if (sameNetwork(groups, network.groups, network.prefix)) return true
    return false
  }

  private hasBits(bits: number): boolean {
    for (const { base, size } of this.ipv4) if (Math.floor(bits / size) === base) return true
    return false
  }
}

/** True when the first `prefix` bits are the same; those of `base` after them are zero. */
function sameNetwork(groups: readonly number[], base: readonly number[], prefix: number): boolean {
  for (let index = 0; index * 16 < prefix; index++) {
    const cleared = Math.max(0, (index + 1) * 16 - prefix)
    if (((groups[index] as number) & (0xffff << cleared)) !== base[index]) return false
  }
  return true
}

function parse(entry: unknown): Network | undefined {
  if (typeof entry !== 'string') return undefined
  const slash = entry.indexOf('/')
  const address = slash === -1 ? entry : entry.slice(0, slash)
  const length = slash === -1 ? undefined : prefixLength(entry.slice(slash + 1))
  if (length === -1) return undefined
  const bits = ipv4Bits(address)
  if (bits !== -1) return length !== undefined && length > 32 ? undefined : { bits, prefix: length ?? 32 }
  // A zone names an interface of this machine, which an address from a header or a socket does not carry here.
  const groups = address.includes('%') ? undefined : ipv6Groups(address)
  if (groups === undefined || (length !== undefined && length > 128)) return undefined
  const prefix = length ?? 128
  const mapped = mappedBits(groups)
  return mapped !== -1 && prefix >= 96 ? { bits: mapped, prefix: prefix - 96 } : { groups, prefix }
}

function prefixLength(text: string): number {
  return /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : -1
}

function invalid(value: unknown, path: string): CatracaError {
  const allowed = 'an address such as "192.0.2.7" or a network such as "10.0.0.0/8" or "2001:db8::/32"'
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

import { CatracaError, show } from '../core/errors.ts'
import { rejectUnknown } from '../core/parameters.ts'
import { canonicalAddress, nat64Prefix, networkOf, withoutNat64 } from '../policy/address.ts'
import { AddressList } from '../policy/address-list.ts'
import { type ForwardingHeader, Hops, maxHops } from './forwarded.ts'
import type { TrustWatch } from './trust-watch.ts'

/** Which proxies are believed about the address of a caller. Without `proxies` and `from`: none. */
export interface TrustOptions {
  /** Proxies in front, each of which appends the address it saw: a whole number from 0 to 32. */
  proxies?: number
  /**
   * Addresses and networks of the proxies, at least one. With `proxies` the connection must come from them. Without, every
   * hop that is one of them is believed, and the first that is not is the caller.
   */
  from?: readonly string[]
  /** The header that is believed; the other one is ignored. Default `x-forwarded-for`. */
  header?: ForwardingHeader
  /** Bits of an IPv6 address that make one caller: a whole number from 32 to 128. Default 64. */
  ipv6Prefix?: number
  /** Prefixes (/96) under which NAT64 puts IPv4 addresses, such as `64:ff9b::/96`: they count as the IPv4 address. */
  nat64?: readonly string[]
}

const optionNames = ['proxies', 'from', 'header', 'ipv6Prefix', 'nat64'] as const
const headers: readonly ForwardingHeader[] = ['x-forwarded-for', 'forwarded']

/** Stands for the address of a caller that has none, as over a Unix socket. */
const unknown = 'unknown'

/**
 * Finds the address of a caller behind proxies, counted from the nearest one. A chain that is shorter than the trusted
 * proxies, or that holds no address where the caller's should stand, gives the address of the connection: never what
 * stands leftmost, which the caller can choose.
 */
export class Trust {
  private readonly proxies: number
  private readonly from: AddressList | undefined
  private readonly header: ForwardingHeader
  private readonly ipv6Prefix: number
  private readonly nat64: readonly (readonly number[])[]
  private readonly watch: TrustWatch | undefined
  /** True when the options say which proxies there are, or that there are none. */
  private readonly stated: boolean
  /** Requests that came from nobody who is believed. */
  private strangers = 0
  /** The peer and the address last asked for: kept-alive connections and proxies repeat theirs. */
  private peer: string | undefined = undefined
  private peerAddress: string = unknown
  private peerIsTrusted = false
  private address = ''
  private network: string = unknown

  /**
   * @param options Checked here. Throws `CATRACA_OPTION_UNKNOWN` and `CATRACA_OPTION_INVALID`.
   * @param where Path of the options in the configuration. @param watch Is told what looks like a mistake in them.
   */
  constructor(options: TrustOptions | undefined, where = 'trust', watch?: TrustWatch) {
    if (options !== undefined) rejectUnknown(optionNames, options, where)
    const { proxies, from, header = 'x-forwarded-for', ipv6Prefix = 64, nat64 = [] } = options ?? {}
    if (proxies !== undefined) checkInteger(proxies, 0, maxHops, 'proxies', `${where}.proxies`)
    checkInteger(ipv6Prefix, 32, 128, 'bits', `${where}.ipv6Prefix`)
    if (!headers.includes(header)) throw invalid(header, `${where}.header`, headers.map(show).join(', '))
    if (Array.isArray(from) && from.length === 0) {
      throw invalid(from, `${where}.from`, 'at least one address or network; leave it out to name none')
    }
    this.from = from === undefined ? undefined : new AddressList(from, `${where}.from`)
    // -1 for as many as `from` names.
    this.proxies = proxies ?? (from === undefined ? 0 : -1)
    this.header = header
    this.ipv6Prefix = ipv6Prefix
    this.nat64 = nat64.map((text, index) => {
      const prefix = nat64Prefix(text)
      if (prefix !== undefined) return prefix
      throw invalid(text, `${where}.nat64[${index}]`, 'an IPv6 prefix of 96 bits such as 64:ff9b::/96')
    })
    this.stated = proxies !== undefined || from !== undefined
    this.watch = watch
    this.meet(undefined)
  }

  /**
   * The canonical address of the caller, `unknown` when there is none. Never throws for what a request holds.
   * Cost without proxies: a comparison for the peer of the last call, one pass over another one.
   *
   * @param peer Address of the other end of the connection. @param field Gives a header of the request by lower-case name,
   * several lines joined by commas; only asked where proxies are trusted.
   */
  addressOf(peer: string | undefined, field: (name: string) => string | undefined): string {
    if (peer !== this.peer) this.meet(peer)
    if (this.proxies === 0 || !this.peerIsTrusted) {
      // Not at each: servers parse the fields of a request only when somebody asks for one.
      if (this.watch?.looksAtStrangers === true && (this.strangers++ < 16 || this.strangers % 64 === 0))
        this.look(field)
      return this.peerAddress
    }
    const value = field(this.header)
    if (value === undefined || value === '') return this.peerAddress
    const hops = new Hops(this.header, value)
    const hop = (this.proxies === -1 ? this.firstStranger(hops) : this.hopAt(hops, this.proxies)) || this.peerAddress
    const address = this.nat64.length === 0 ? hop : withoutNat64(hop, this.nat64)
    this.watch?.resolved(address, value)
    return address
  }

  /** What a caller of this address is counted as: IPv4 by itself, IPv6 by its network; `unknown` for other texts. */
  networkOf(address: string): string {
    if (address !== this.address) {
      this.network = networkOf(address, this.ipv6Prefix) ?? unknown
      this.address = address
    }
    return this.network
  }

  private meet(peer: string | undefined): void {
    const address = (peer === undefined ? undefined : canonicalAddress(peer)) ?? unknown
    this.peerIsTrusted = this.from === undefined || this.from.has(address)
    this.peerAddress = this.nat64.length === 0 ? address : withoutNat64(address, this.nat64)
    this.peer = peer
  }

  /** Looks whether somebody who is not believed says through whom it came; who declared `proxies: 0` knows. */
  private look(field: (name: string) => string | undefined): void {
    if (this.stated && this.from === undefined) return
    for (const header of headers) {
      if (field(header) !== undefined) this.watch?.stranger(this.peerAddress, header, this.stated)
    }
  }

  private hopAt(hops: Hops, position: number): string | undefined {
    let hop = hops.next()
    for (let at = 1; at < position && hop !== undefined; at++) hop = hops.next()
    return hop
  }

  /** The first hop that is no proxy; the furthest proxy when all are. A broken entry ends the search without result. */
  private firstStranger(hops: Hops): string | undefined {
    let furthest: string | undefined
    for (let seen = 0; seen < maxHops; seen++) {
      const hop = hops.next()
      if (hop === undefined) return furthest
      if (hop === '' || !this.from?.has(hop)) return hop
      furthest = hop
    }
    return undefined
  }
}

function checkInteger(value: unknown, min: number, max: number, unit: string, path: string): void {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return
  throw invalid(value, path, `a whole number of ${unit} from ${min} to ${max}`)
}

function invalid(value: unknown, path: string, allowed: string): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

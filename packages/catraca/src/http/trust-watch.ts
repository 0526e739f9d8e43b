import { show } from '../core/errors.ts'
import { isPrivateAddress } from '../policy/address.ts'
import type { Diagnoses } from './diagnoses.ts'
import type { ForwardingHeader } from './forwarded.ts'

/** Requests that are looked at together, and the share of one address among them that is no chance. */
const blockSize = 1_000
const share = 1 / 2
/** Chains that must differ: callers who are many. */
const manyChains = 20

/**
 * Looks for signs that the proxies in front are not those that were declared. Each is told once, after which looking for
 * it costs nothing; before, a look-up and two small maps of the last thousand requests that came through proxies.
 */
export class TrustWatch {
  private readonly diagnoses: Diagnoses
  private seen = 0
  private readonly perAddress = new Map<string, number>()
  private readonly chains = new Set<string>()

  constructor(diagnoses: Diagnoses) {
    this.diagnoses = diagnoses
  }

  /** True while headers of strangers are of interest. */
  get looksAtStrangers(): boolean {
    return !this.diagnoses.has('CATRACA_FORWARDED_UNTRUSTED')
  }

  /** Who is no trusted proxy sent a forwarding header. @param stated What the document says of proxies. */
  stranger(peer: string, header: ForwardingHeader, stated: boolean): void {
    const what = stated
      ? 'which trust.from does not name: if it is a proxy of yours, all its callers are counted as one; add it there'
      : 'and nothing says which proxies are in front: if one is, all its callers are counted as one; write ' +
        'trust: { proxies: 1 }, or { proxies: 0 } when callers connect directly'
    this.diagnoses.tell('CATRACA_FORWARDED_UNTRUSTED', `${show(peer)} sent ${header}, ${what}`)
  }

  /** An address that was read from a chain. */
  resolved(address: string, chain: string): void {
    if (!this.diagnoses.has('CATRACA_ADDRESS_PRIVATE') && isPrivateAddress(address)) {
      const message =
        `${show(address)} was taken for the address of a caller, which no caller from outside has: trust counts fewer ` +
        'proxies than there are'
      this.diagnoses.tell('CATRACA_ADDRESS_PRIVATE', message)
    }
    if (!this.diagnoses.has('CATRACA_ADDRESS_SHARED')) this.count(address, chain)
  }

  private count(address: string, chain: string): void {
    this.perAddress.set(address, (this.perAddress.get(address) ?? 0) + 1)
    if (this.chains.size < manyChains) this.chains.add(chain.slice(0, 256))
    if (++this.seen < blockSize) return
    const [most, count] = [...this.perAddress].reduce((a, b) => (b[1] > a[1] ? b : a))
    if (count > blockSize * share && this.chains.size >= manyChains) {
      const message =
        `${count} of ${blockSize} requests were counted as ${show(most)} while they came through at least ` +
        `${manyChains} different chains: a proxy that trust does not count stands in front, and all share one limit`
      this.diagnoses.tell('CATRACA_ADDRESS_SHARED', message)
    }
    this.seen = 0
    this.perAddress.clear()
    this.chains.clear()
  }
}

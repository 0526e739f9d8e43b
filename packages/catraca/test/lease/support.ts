import type { Redis } from 'ioredis'
import type { LeaseTerms } from '../../src/core/decision.ts'
import type { Memory } from '../../src/stores/redis/ask-grant.ts'
import { type Call, type Calls, PromisedCall } from '../../src/stores/redis/calls.ts'
import { Grants } from '../../src/stores/redis/grants.ts'
import { grant, pulse } from '../../src/stores/redis/script.generated.ts'
import { type Named, Simulated, timedScripts } from '../redis/simulated.ts'

/** As simulated.ts does with the other scripts: the time is the last argument, lives are by the clock of the test. */
const clock = "local clock = call('TIME')\nlocal us = clock[1] * 1000000 + clock[2]"
const life = "keep = redis.call('PTTL', key)"
const timedLife = "keep = redis.call('HGET', 'ends', key)\nkeep = keep and keep - us / 1000 or redis.call('PTTL', key)"

function timed(text: string): string {
  if (!text.includes(clock)) throw new Error('a script that does not read the clock as expected')
  return text.replace(clock, 'local us = ARGV[#ARGV] + 0').replaceAll(life, timedLife)
}

export interface LeasedPolicy extends Named {
  readonly lease?: LeaseTerms
}

/** What one instance knows of the memory of the store, and how often it was told to look. */
export class Known implements Memory {
  markerKey: string | undefined
  marker = ''
  lostUs = 0
  looks = 0

  constructor(markerKey?: string) {
    this.markerKey = markerKey
  }

  suspect(): void {
    this.looks++
  }
}

/** The seams of a simulated store that tests of grants reach into. */
interface Store {
  calls: { send: (call: Call) => void }
  grants: Grants
}

/** One instance on a real server under a clock of the test, which can be asked for grants. */
export class Instance {
  readonly shared: Simulated
  readonly known: Known
  readonly store: Store

  constructor(shared: Simulated, known: Known) {
    this.shared = shared
    this.known = known
    this.store = (shared.ledger as unknown as { store: Store }).store
    // What is sent may be changed by a test, later.
    const calls = { send: (call: Call) => this.store.calls.send(call) }
    this.store.grants = new Grants(calls as Calls, known)
  }

  /** As one reading of the pulse: learns what the store says of its memory. */
  async look(fresh: string): Promise<{ marker: string; lostUs: number }> {
    const { known } = this
    const markerKey = known.markerKey as string
    const call = new PromisedCall(pulse, [markerKey, `${markerKey}s`], [fresh, 'id', '3500000', known.marker])
    this.store.calls.send(call)
    const [marker, , , lostUs] = ((await call.promise) as unknown[]).map(String) as [string, string, string, string]
    known.marker = marker === '' ? fresh : marker
    known.lostUs = Number(lostUs)
    return { marker: known.marker, lostUs: known.lostUs }
  }
}

export type OpenInstance = (name: string, policies: readonly LeasedPolicy[], known?: Known) => Instance

export async function loadGrants(redis: Redis): Promise<OpenInstance> {
  for (const { sha, text } of [grant, pulse]) timedScripts.set(sha, timed(text))
  const open = await Simulated.load(redis)
  return (name, policies, known = new Known()) => new Instance(open(name, policies), known)
}

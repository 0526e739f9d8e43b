import type { LeaseTerms } from '../../core/decision.ts'
import type { Rule } from '../../core/rule.ts'
import { Lease } from '../../stores/lease/lease.ts'
import { leaseBounds, leaseEndUs } from '../../stores/lease/terms.ts'
import { Counts, type Fault } from './log.ts'
import { simulate } from './simulation.ts'
import type { Trial } from './world.ts'

/** What {@link searchLeases} tries. */
export interface LeaseSearch {
  /** A rule that may be leased, with ticks of 1 µs. */
  readonly rule: Rule
  readonly terms: LeaseTerms
  /** Processes that share the key. */
  readonly instances: number
  /** Runs; each draws its world from one seed. */
  readonly seeds: number
  /** The first seed, 1 where nobody says; the others follow. */
  readonly firstSeed?: number
  /** The machine under test; that of the library where nobody says. */
  readonly makeLease?: Trial['makeLease']
  /** When a lease ends, `leaseEndUs` where nobody says. */
  readonly endUs?: Trial['endUs']
  /** The clock that leases are judged by; `wall` is one that is set back and forth. Default `monotonic`. */
  readonly clock?: Trial['clock']
  /** False: neither the centre nor an instance minds that the memory was lost. Default true. */
  readonly learns?: boolean
  /** Kinds of faults that are minded; all where nobody says. */
  readonly kinds?: readonly Fault['kind'][]
}

/** A run in which something went wrong, to be played again by its seed. */
export interface LeaseViolation {
  readonly seed: number
  readonly rule: string
  readonly terms: LeaseTerms
  readonly instances: number
  readonly faults: readonly Fault[]
  /** The last lines of what happened, µs since the start of the run. */
  readonly trace: readonly string[]
}

/** What {@link searchLeases} saw. */
export interface LeaseSearchResult {
  /** Of all runs, that with the violation included. */
  readonly counts: Readonly<Counts>
  /** Units admitted beyond the rule in the worst span of all runs. */
  readonly greatestExcess: number
  /** What the bound of the lease allows of that. */
  readonly over: number
  /** The first run that broke a bound or an invariant; the search ends there. */
  readonly violation: LeaseViolation | undefined
}

/** Lines of a trace that are told. */
const lines = 60

/**
 * Attacks the lease of one key: processes that hold units of it, with clocks of their own, share a centre over a network
 * that delays, reorders and loses; they pause, fail, close and begin again, callers come in crowds, leave, and undo what
 * they took, and the centre loses its memory. Every admission is logged in true time, and the log is judged by the rule as
 * it is worded and by `leaseBounds`; some invariants are checked after every event. The same seed gives the same run. Costs
 * about a millisecond per seed. Throws a `RangeError` for a rule with longer ticks, or that is never leased.
 */
export function searchLeases(search: LeaseSearch): LeaseSearchResult {
  const { rule, terms, instances, firstSeed = 1 } = search
  if (rule.tickUs !== 1 || rule.lease === 'never') throw new RangeError('a rule that is leased, with ticks of 1 µs')
  const trial: Trial = {
    rule,
    terms,
    instances,
    makeLease: search.makeLease ?? ((terms) => new Lease(terms)),
    endUs: search.endUs ?? leaseEndUs,
    clock: search.clock ?? 'monotonic',
    learns: search.learns ?? true,
  }
  const counts = new Counts()
  const { over } = leaseBounds(rule, terms, instances)
  let greatestExcess = -Infinity
  for (let seed = firstSeed; seed < firstSeed + search.seeds; seed++) {
    const run = simulate(trial, seed, counts)
    greatestExcess = Math.max(greatestExcess, run.excess)
    const faults = run.faults.filter(({ kind }) => search.kinds?.includes(kind) ?? true)
    if (faults.length === 0) continue
    const trace = traceOf(trial, seed, Math.min(...faults.map(({ atUs }) => atUs)))
    const violation = { seed, rule: ruleText(rule), terms, instances, faults, trace }
    return { counts, greatestExcess, over, violation }
  }
  return { counts, greatestExcess, over, violation: undefined }
}

/** The last that happened up to an instant. */
function traceOf(trial: Trial, seed: number, untilUs: number): string[] {
  return simulate(trial, seed, new Counts(), true)
    .trace.filter(({ us }) => us <= untilUs)
    .slice(-lines)
    .map(({ us, text }) => `${us} ${text}`)
}

function ruleText({ algorithm, options }: Rule): string {
  return `${algorithm} ${JSON.stringify(options)}`
}

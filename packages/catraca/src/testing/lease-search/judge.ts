import type { LeaseBounds } from '../../stores/lease/terms.ts'
import { outlastsRule } from '../../stores/lease/terms.ts'
import type { Admission, Fault, Span } from './log.ts'
import type { Trial } from './world.ts'
import { type Worst, worstOf } from './worst.ts'

/** A fault whose span is told in true time. */
export type Verdict = Pick<Fault, 'kind' | 'detail' | 'span'>

/** What the judge says. */
export interface Judgement {
  readonly excess: number
  readonly faults: readonly Verdict[]
}

/**
 * Judges all admissions of a run by the rule as it is worded and the bounds of its leases.
 *
 * Where leases last as long as anything counts, a loss of the centre's memory changes nothing. Elsewhere only spans are
 * judged in which there was none, and in those after a loss as many more units may be admitted as were held at it.
 */
export function judge(
  trial: Trial,
  log: readonly Admission[],
  lostUs: readonly number[],
  bounds: LeaseBounds,
): Judgement {
  const { rule, terms, instances } = trial
  const ordered = log.filter(({ cost }) => cost > 0).toSorted((a, b) => a.us - b.us)
  const whole = lostUs.length === 0 || outlastsRule(rule, terms)
  const faults: Verdict[] = []
  let excess = -Infinity
  for (let epoch = 0; epoch <= (whole ? 0 : lostUs.length); epoch++) {
    const part = whole ? ordered : ordered.filter((one) => one.epoch === epoch)
    const allowed = epoch === 0 ? bounds.over : instances * bounds.held
    const worst = worstOf(rule, part)
    excess = Math.max(excess, worst.over)
    if (worst.over > allowed) faults.push(overFault({ ...worst, allowed }))
  }
  for (let instance = 0; instance < instances; instance++) {
    const own = ordered.filter((one) => one.instance === instance)
    const held = mostHeldAtOnce(own)
    const allowed = bounds.held
    if (held.over > allowed) {
      const detail = `#${instance} used ${held.over} units that it held at one instant, at most ${allowed}`
      faults.push({ kind: 'held', detail, span: { ...held, allowed } })
    }
  }
  return { excess, faults }
}

/** The units that were in hand or on their way at one instant and were used after it. The bound stands on this number. */
function mostHeldAtOnce(own: readonly Admission[]): Worst {
  const changes = own.flatMap(({ us, cost, heldFromUs }) =>
    heldFromUs === undefined
      ? []
      : [
          { us: heldFromUs, cost },
          { us, cost: -cost },
        ],
  )
  const worst = { over: 0, fromUs: 0, toUs: 0 }
  let held = 0
  // Uses before charges of the same instant: a span that begins there has them inside.
  for (const { us, cost } of changes.toSorted((a, b) => a.us - b.us || a.cost - b.cost)) {
    held += cost
    if (held > worst.over) Object.assign(worst, { over: held, fromUs: us, toUs: us })
  }
  return worst
}

function overFault(span: Span): Verdict {
  return { kind: 'over', detail: `${span.over} units more than the rule admits, ${span.allowed} are allowed`, span }
}

/** Units that callers were given, as they count. */
export interface Admission {
  /** The instant at which it counts, true time: the centre's where a caller waited for the centre, else that of the decision. */
  readonly us: number
  /** What was not undone. */
  cost: number
  /** How often the centre had lost its memory by then. */
  readonly epoch: number
  /** Stored time of the charge: for a window that begins with the first caller its start. */
  readonly origin: number
  /** When the centre charged what an instance used later by itself; undefined where a caller waited for the centre. */
  readonly heldFromUs: number | undefined
  /** The instance that decided. */
  readonly instance: number
}

/** What went wrong in a run. */
export interface Fault {
  /**
   * `over`: more admitted than the bound. `late`: a unit used after its lease. `held`: more held than a lease may hold.
   * `under`: refused while others held more than the bound. `promise`: refused at the time that a refusal had named.
   * `kept`: units that did not go back. `waiter`: somebody waits for ever. `machine`: anything else that a lease must
   * never do.
   */
  readonly kind: 'over' | 'late' | 'held' | 'under' | 'promise' | 'kept' | 'waiter' | 'machine'
  readonly detail: string
  /** When it was seen, µs since the start of the run. */
  readonly atUs: number
  /** The span in which too much was admitted. */
  readonly span?: Span | undefined
}

/** A span of true time, µs since the start of the run. */
export interface Span {
  readonly fromUs: number
  readonly toUs: number
  /** Units admitted beyond what the rule admits, and beyond which the bound allows none. */
  readonly over: number
  readonly allowed: number
}

/** What happened in runs; each number is there so that a test can tell that it did. */
export class Counts {
  seeds = 0
  calmSeeds = 0
  admissions = 0
  /** Of these with units in hand. */
  local = 0
  refusals = 0
  /** Callers decided without the centre. */
  without = 0
  /** Questions to the centre. */
  trips = 0
  /** Of these such that nobody waited for. */
  refills = 0
  /** Messages that did not arrive. */
  lostMessages = 0
  timeouts = 0
  /** Answers after the deadline whose units went back. */
  lateGrants = 0
  /** Units that went back to the centre. */
  returned = 0
  /** Callers who left, and admissions undone here and at the centre. */
  left = 0
  putBack = 0
  refunded = 0
  /** Callers who asked for more than a block. */
  large = 0
  /** Losses of the centre's memory, and what instances told it then. */
  losses = 0
  reports = 0
  crashes = 0
  pauses = 0
  closes = 0
  clockSteps = 0
  /** Times at which the bound on what others hold, the promise of a refusal, and the balance at the end were checked. */
  underChecks = 0
  promiseChecks = 0
  balances = 0
}

/** Units of one answer of the centre. `G` is what the centre said. */
export interface Lot<G> {
  readonly grant: G
  /** Units not used yet. */
  left: number
  /** The first instant at which they may not be used any more, by the monotonic clock here. */
  endsUs: number
  /** The instant up to which a later answer of the centre may put that off. */
  readonly untilUs: number
}

/** What happens to a lease. `W` is a caller who waits. */
export type LeaseEvent<G, W> =
  /** Somebody needs units that are not in hand; at most a block. */
  | { readonly type: 'wait'; readonly waiter: W; readonly cost: number }
  /** Somebody does not wait any more. */
  | { readonly type: 'leave'; readonly waiter: W }
  /** Few units are left. */
  | { readonly type: 'refill' }
  /** The centre gave units, which may be used before `endsUs`, or with later answers before `untilUs`; default `endsUs`. */
  | {
      readonly type: 'granted'
      readonly grant: G
      readonly units: number
      readonly endsUs: number
      readonly untilUs?: number
    }
  /** The centre has not enough units; `waitUs` until it has. */
  | { readonly type: 'refused'; readonly waitUs: number }
  /** The centre did not answer. */
  | { readonly type: 'failed' }
  /** Time has passed. */
  | { readonly type: 'look' }
  /** The centre lost its memory. */
  | { readonly type: 'lost' }
  /** The end: all goes back. */
  | { readonly type: 'close' }

/** What is to be done. */
export type LeaseEffect<G, W> =
  /**
   * Ask the centre for as many units as pass: at least `least`, at most `most`. `soon`: somebody
   * waits for them, or will before long.
   */
  | { readonly type: 'ask'; readonly least: number; readonly most: number; readonly soon: boolean }
  /** A caller goes on. `asked`: the units were asked for on its behalf, so it counts at the instant of the centre. */
  | {
      readonly type: 'admit'
      readonly waiter: W
      readonly cost: number
      readonly lot: Lot<G>
      readonly marks: number
      readonly asked: boolean
    }
  /** The last answer of the centre refuses a caller. */
  | { readonly type: 'refuse'; readonly waiter: W; readonly cost: number }
  /** A caller is decided without the centre. */
  | { readonly type: 'without'; readonly waiter: W; readonly cost: number }
  /** Give units back to the centre. */
  | { readonly type: 'return'; readonly lot: Lot<G>; readonly units: number }
  /** Tell the new centre what of the old one's is in hand, and what was used during one lease time. */
  | { readonly type: 'report'; readonly units: number }

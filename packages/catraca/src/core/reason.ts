/** Why a request was refused; `ok` is the reason of an admitted one. The place in the list is the code in a decision. */
export const reasons = [
  'ok',
  'limited',
  'impossible',
  'blocked',
  'concurrency',
  'quota',
  'queue-full',
  'ceiling',
  'store-closed',
  'aborted',
] as const
export type Reason = (typeof reasons)[number]
export type DenialReason = Exclude<Reason, 'ok'>

export function reasonCode(reason: Reason): number {
  return reasons.indexOf(reason)
}

import type { CheckCode } from '../core/errors.ts'
import { durationText, durationUs } from '../core/duration.ts'
import type { Rule } from '../core/rule.ts'
import { boundsOf } from './bounds.ts'
import { oversold } from './budget.ts'
import type { CheckContext, Finding } from './findings.ts'
import type { Policies, Policy } from './policy.ts'
import type { Place } from './shape.ts'

type Found = Pick<Finding, 'level' | 'place' | 'message'>

/** One check: its code, which is its name and its switch, and how it looks. */
export interface Check {
  readonly code: CheckCode
  readonly run: (policies: Policies, context: CheckContext) => Found[]
}

/** Routes on which passwords, codes and messages are tried. */
const loginWords = /log-?in|sign-?in|password|senha|\botp\b|\bsms\b|token|recover|2fa/i
/** A queue in which the last waits longer than callers and gateways usually do. */
const longestQueueMs = 5_000
/** Shares of the limit per minute that are usual for a burst. */
const usualBurst = { from: 0.1, to: 0.25 } as const
const minuteMs = 60_000

export const checks: readonly Check[] = [
  { code: 'CATRACA_CHECK_ADDRESS_KEY', run: addressKey },
  { code: 'CATRACA_CHECK_TRUST', run: trust },
  { code: 'CATRACA_CHECK_NO_GLOBAL', run: noGlobal },
  { code: 'CATRACA_CHECK_ONE_LIMIT', run: oneLimit },
  { code: 'CATRACA_CHECK_LOGIN_FAILURE', run: loginFailure },
  { code: 'CATRACA_CHECK_STORE_FAILURE', run: storeFailure },
  { code: 'CATRACA_CHECK_NEVER', run: never },
  { code: 'CATRACA_CHECK_QUEUE_WAIT', run: queueWait },
  { code: 'CATRACA_CHECK_OVERSOLD', run: oversold },
  { code: 'CATRACA_CHECK_BURST', run: burst },
  { code: 'CATRACA_CHECK_MISSING', run: missing },
]

function asked({ list }: Policies): readonly Policy[] {
  return list.filter(({ mode }) => mode !== 'off')
}

function warning(place: Place, message: string): Found {
  return { level: 'warning', place, message }
}

function note(place: Place, message: string): Found {
  return { level: 'note', place, message }
}

function onlyAddress({ parts }: Policy): boolean {
  return parts.every(({ kind }) => kind === 'address')
}

function addressKey(policies: Policies, { authenticated }: CheckContext): Found[] {
  const list = asked(policies)
  const known = list.filter(({ identity }) => identity === 'client' || identity === 'user')
  const routes = new Set(known.flatMap(({ entry }) => entry.match?.routes ?? []))
  const found = list.filter((policy) => {
    if (!onlyAddress(policy)) return false
    if (known.includes(policy)) return true
    return policy.identity === undefined && policy.entry.match?.routes?.some((route) => routes.has(route)) === true
  })
  const wrong = found.map(({ name }) =>
    warning(
      ['policies', name, 'per'],
      'counts verified callers by address: a company behind one address shares the limit, a caller with many addresses ' +
        'has many; count them by client, user or tenant',
    ),
  )
  const byIdentity = list.some(({ parts }) => parts.some(({ kind }) => ['client', 'user', 'tenant'].includes(kind)))
  if (authenticated !== true || byIdentity) return wrong
  return [...wrong, warning(['policies'], 'verified callers have no limit of their own; add a policy per client')]
}

function trust({ document, ...policies }: Policies): Found[] {
  if (document.trust?.proxies !== undefined || document.trust?.from !== undefined) return []
  const by = asked({ document, ...policies }).filter(({ parts }) => parts.some(({ kind }) => kind === 'address'))
  if (by.length === 0) return []
  const message =
    'does not say how many proxies are in front, while addresses are counted: behind a balancer all callers would share ' +
    'its address; write trust: { proxies: 1 }, or { proxies: 0 } when callers connect directly'
  return [warning(['trust'], message)]
}

function noGlobal(policies: Policies): Found[] {
  if (asked(policies).some(({ parts }) => parts[0]?.kind === 'service')) return []
  const message =
    'has limits for each caller and none for all together: enough callers within their limits can still overload the ' +
    'service; add a policy per service'
  return [warning(['policies'], message)]
}

function oneLimit(policies: Policies): Found[] {
  if (asked(policies).some(({ routes }) => routes !== undefined)) return []
  const message =
    'has the same limit for every route: an expensive call, or a login, counts like a cheap read; add a policy with ' +
    'match.routes for those'
  return [warning(['policies'], message)]
}

function isLogin({ entry }: Policy): boolean {
  return entry.match?.routes?.some((route) => loginWords.test(route)) === true
}

function loginFailure(policies: Policies): Found[] {
  const silent = asked(policies).filter((policy) => isLogin(policy) && policy.entry.onStoreFailure === undefined)
  return silent.map(({ name }) =>
    warning(
      ['policies', name],
      'guards a login and does not say what happens while the shared store does not answer: passwords could be tried ' +
        'without limit; write onStoreFailure: closed (or local)',
    ),
  )
}

function storeFailure(policies: Policies): Found[] {
  if (policies.document.defaults?.onStoreFailure !== undefined) return []
  const silent = asked(policies).filter((policy) => policy.entry.onStoreFailure === undefined && !isLogin(policy))
  if (silent.length === 0) return []
  const names = silent.map(({ name }) => name).join(', ')
  const message =
    `does not say what happens while the shared store does not answer (${names}): local counts in each instance, open ` +
    'lets pass, closed refuses; write defaults: { onStoreFailure: local } or one for each policy'
  return [warning(['defaults', 'onStoreFailure'], message)]
}

function variantsOf(policy: Policy): readonly { place: Place; rule: Rule }[] {
  const place = ['policies', policy.name]
  const named = (kind: string, map: Policy['byPlan']): { place: Place; rule: Rule }[] =>
    [...(map ?? [])].map(([name, { rule }]) => ({ place: [...place, kind, name], rule }))
  return [
    { place: [...place, 'rule'], rule: policy.base.rule },
    ...named('plans', policy.byPlan),
    ...named('clients', policy.byClient),
  ]
}

/**
 * "Never more than N in any T" holds for a bucket when B + r × T ≤ N, so r = (N − B) ÷ T at most; for a window that is no
 * longer than T each of the up to ceil(T ÷ W) + 1 windows it touches lets its bound pass.
 */
function never(policies: Policies): Found[] {
  return asked(policies).flatMap((policy) => {
    const promise = policy.entry.never
    if (promise === undefined) return []
    const spanMs = durationUs(promise.window, 'never.window') / 1_000
    return variantsOf(policy).flatMap(({ place, rule }) => {
      const most = mostWithin(rule, spanMs)
      if (most === undefined || most <= promise.limit) return []
      const span = durationText(spanMs * 1_000)
      return [warning(place, `lets up to ${most} pass in ${span}, never asks for ${promise.limit}${advice(rule, promise.limit, spanMs)}`)]
    })
  })
}

function mostWithin(rule: Rule, spanMs: number): number | undefined {
  const { limit, windowMs } = rule.options as { limit: number; windowMs?: number }
  if (windowMs === undefined) return undefined
  const windows = Math.ceil(spanMs / windowMs)
  switch (rule.algorithm) {
    case 'sliding-log':
      return windows * limit
    case 'fixed-window':
    case 'sliding-counter':
      return (windows + 1) * limit
    default:
      return rule.limit + Math.floor((limit * spanMs) / windowMs)
  }
}

function advice(rule: Rule, limit: number, spanMs: number): string {
  const span = durationText(spanMs * 1_000)
  const burst = rule.options['burst']
  if (burst === undefined) return `; allowed: sliding-log with limit ${limit} and window ${span}`
  if (rule.limit >= limit) return `; allowed: a burst below ${limit}`
  return `; with burst ${rule.limit} allowed: limit ${limit - rule.limit} per ${span}`
}

function queueWait(policies: Policies): Found[] {
  return asked(policies).flatMap((policy) =>
    variantsOf(policy).flatMap(({ place, rule }) => {
      const { worstWaitMs } = boundsOf(rule)
      if (worstWaitMs === undefined) return []
      const words = `the last in a full queue of ${rule.limit} waits ${durationText(Math.round(worstWaitMs * 1_000))}`
      if (worstWaitMs <= longestQueueMs) return [note(place, words)]
      return [warning(place, `${words}: most callers will have left; fewer places, or a higher limit`)]
    }),
  )
}

/** Only for bursts that were written: the default is the whole limit, and means that no burst was thought of. */
function burst(policies: Policies): Found[] {
  return asked(policies).flatMap((policy) => {
    const written = [
      { place: ['policies', policy.name, 'rule', 'burst'], given: policy.entry.rule, rule: policy.base.rule },
      ...Object.entries(policy.entry.plans ?? {}).map(([plan, given]) => ({
        place: ['policies', policy.name, 'plans', plan, 'burst'],
        given,
        rule: policy.byPlan?.get(plan)?.rule,
      })),
    ]
    return written.flatMap(({ place, given, rule }) => {
      const { limit, windowMs } = (rule?.options ?? {}) as { limit?: number; windowMs?: number }
      if (given['burst'] === undefined || limit === undefined || windowMs === undefined || windowMs < minuteMs) return []
      const share = (given['burst'] as number) / ((limit * minuteMs) / windowMs)
      if (share >= usualBurst.from && share <= usualBurst.to) return []
      return [note(place, `is ${percent(share)} of the limit per minute; 10 to 25 % is usual`)]
    })
  })
}

function percent(share: number): string {
  return `${Math.round(share * 1_000) / 10} %`
}

/** Requests that lack a value share one bucket, which is right or a surprise. */
function missing(policies: Policies): Found[] {
  return asked(policies).flatMap((policy) =>
    policy.parts.flatMap(({ kind, text }, index) => {
      const sure = kind === 'address' || kind === 'service' || kind === policy.identity
      if (sure) return []
      const place = ['policies', policy.name, 'per', ...(Array.isArray(policy.entry.per) ? [index] : [])]
      return [note(place, `requests without ${text} share one bucket under the rest of the key`)]
    }),
  )
}

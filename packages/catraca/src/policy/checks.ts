import { durationText, durationUs } from '../core/duration.ts'
import type { CheckCode } from '../core/errors.ts'
import type { Rule } from '../core/rule.ts'
import { boundsOf } from './bounds.ts'
import { oversold } from './budget.ts'
import type { OverrideEntry, PolicyEntry } from './document.ts'
import { explainedLease } from './explain.ts'
import type { CheckContext, Finding } from './findings.ts'
import type { KeyPart, PartKind } from './key-part.ts'
import type { Policies, Policy } from './policy.ts'
import type { Place } from './shape.ts'

type Found = Pick<Finding, 'level' | 'place' | 'message'>

/** One check: its code, which is its name and its switch, and how it looks. */
export interface Check {
  readonly code: CheckCode
  readonly run: (policies: Policies, context: CheckContext) => Found[]
}

/** Routes on which passwords, codes and messages are tried. */
const loginWords = /log-?in|sign-?in|password|senha|\botp\b|\bsms\b|token|recover|recupera|2fa/i
/** A queue in which the last waits longer than callers and gateways usually do. */
const longestQueueMs = 5_000
/** Shares of the limit per minute, in percent, that are usual for a burst. */
const usualBurst = { from: 10, to: 25 } as const
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
  { code: 'CATRACA_CHECK_LEASE', run: lease },
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

function trust(policies: Policies): Found[] {
  const { proxies, from } = policies.document.trust ?? {}
  if (proxies !== undefined || from !== undefined) return []
  if (!asked(policies).some(({ parts }) => parts.some(({ kind }) => kind === 'address'))) return []
  const message =
    'does not say how many proxies are in front, while addresses are counted: behind a balancer all callers would share ' +
    'its address; write trust: { proxies: 1 }, or { proxies: 0 } when callers connect directly'
  return [warning(['trust'], message)]
}

function noGlobal(policies: Policies): Found[] {
  // One that is about some routes, or some callers, does not hold all together.
  const holdsAll = ({ parts, routes, identity }: Policy): boolean =>
    parts[0]?.kind === 'service' && routes === undefined && identity === undefined
  if (asked(policies).some(holdsAll)) return []
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
  const closed = policies.document.defaults?.onStoreFailure === 'closed'
  return asked(policies).flatMap((policy) => {
    const { onStoreFailure: own } = policy.entry
    if (!isLogin(policy) || (own === undefined ? closed : own !== 'open')) return []
    const says = own === undefined ? 'does not say at the policy what happens' : 'lets everything pass'
    const message =
      `guards a login and ${says} while the shared store does not answer: passwords could be tried without limit; ` +
      'write onStoreFailure: closed (or local)'
    return [warning(['policies', policy.name, ...(own === undefined ? [] : ['onStoreFailure'])], message)]
  })
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
 * "Never more than N in any T" holds for a bucket when B + r × T ≤ N, so r = (N − B) ÷ T at most. For a window of length W
 * each of the up to ceil(T ÷ W) + 1 windows that T touches lets its limit pass; the log is exact, ceil(T ÷ W) times.
 */
function never(policies: Policies): Found[] {
  return asked(policies).flatMap((policy) => {
    const promise = policy.entry.never
    if (promise === undefined) return []
    const spanMs = durationUs(promise.window, 'never.window') / 1_000
    const span = durationText(spanMs * 1_000)
    return variantsOf(policy).flatMap(({ place, rule }) => {
      const most = mostWithin(rule, spanMs)
      if (most <= promise.limit) return []
      const found =
        most === Infinity
          ? `limits what is under way at once, not what passes in ${span}`
          : `lets up to ${most} pass in ${span}`
      return [warning(place, `${found}, never asks for ${promise.limit}; ${advice(rule, promise.limit, span)}`)]
    })
  })
}

/** Calendar periods are never shorter than this: clocks are changed, and a zone may skip a date. */
const hourMs = 3_600_000
const shortestMs: Readonly<Record<string, number>> = {
  day: 22 * hourMs,
  week: 143 * hourMs,
  month: 647 * hourMs,
  year: 8_735 * hourMs,
}

/** Units a rule lets pass at most in any span; Infinity where it does not limit that. */
function mostWithin(rule: Rule, spanMs: number): number {
  const {
    limit = rule.limit,
    windowMs,
    period,
  } = rule.options as { limit?: number; windowMs?: number; period?: string }
  const length = windowMs ?? shortestMs[period ?? '']
  if (length === undefined) return Infinity
  const windows = Math.ceil(spanMs / length)
  switch (rule.algorithm) {
    case 'sliding-log':
      return windows * limit
    case 'quota':
    case 'fixed-window':
    case 'sliding-counter':
      return (windows + 1) * limit
    default:
      return rule.limit + Math.floor((limit * spanMs) / length)
  }
}

function advice(rule: Rule, limit: number, span: string): string {
  if (rule.options['burst'] === undefined) return `allowed: sliding-log with limit ${limit} and window ${span}`
  const name = rule.algorithm === 'leaky-queue' ? 'capacity' : 'burst'
  if (rule.limit >= limit) return `allowed: a ${name} below ${limit}, and the rest of it as limit per ${span}`
  return `with ${name} ${rule.limit} allowed: limit ${limit - rule.limit} per ${span}`
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

interface Written {
  readonly at: readonly string[]
  readonly given: OverrideEntry
  readonly rule: Rule | undefined
}

/** Only for bursts that were written: the default is the whole limit, and means that no burst was thought of. */
function burst(policies: Policies): Found[] {
  return asked(policies).flatMap((policy) => {
    const { plans, clients, rule } = policy.entry
    const named = (kind: string, entries: PolicyEntry['plans'], rules: Policy['byPlan']): Written[] =>
      Object.entries(entries ?? {}).map(([name, given]) => ({ at: [kind, name], given, rule: rules?.get(name)?.rule }))
    const written = [
      { at: ['rule'], given: rule, rule: policy.base.rule },
      ...named('plans', plans, policy.byPlan),
      ...named('clients', clients, policy.byClient),
    ]
    return written.flatMap(({ at, given, rule }) => {
      const { limit, windowMs } = (rule?.options ?? {}) as { limit?: number; windowMs?: number }
      if (given['burst'] === undefined || limit === undefined || windowMs === undefined || windowMs < minuteMs)
        return []
      const share = percent(((given['burst'] as number) * windowMs) / (limit * minuteMs))
      if (share >= usualBurst.from && share <= usualBurst.to) return []
      return [
        note(['policies', policy.name, ...at, 'burst'], `is ${share} % of the limit per minute; 10 to 25 % is usual`),
      ]
    })
  })
}

function percent(share: number): number {
  return Math.round(share * 1_000) / 10
}

/** A lease that can let a tenth of the limit and more pass above it is hardly a limit; any other is worth knowing. */
const usualOver = 10

function lease(policies: Policies): Found[] {
  return asked(policies).flatMap((policy) => {
    const terms = policy.lease
    if (terms === undefined) return []
    const place = ['policies', policy.name, 'lease']
    const { instances, bounds } = explainedLease(policy.base.rule, terms, policies)
    const each = instances === undefined ? ', for each instance' : ''
    const words =
      `lets instances hold up to ${bounds.held} of a key each: up to ${bounds.over} more than the rule admits can pass, and ` +
      `a caller can be refused while others hold up to ${bounds.under}${each}`
    const limits = variantsOf(policy).map(({ rule }) => Number(rule.options['limit'] ?? rule.limit))
    const share = percent(Math.max(bounds.over, bounds.under) / Math.min(...limits))
    if (share <= usualOver) return [note(place, words)]
    const hint = limits.length === 1 ? 'of the limit' : `of its smallest limit, ${Math.min(...limits)}`
    return [warning(place, `${words}; that is ${share} % ${hint}: a smaller block, or none`)]
  })
}

/** Requests that lack a value share one bucket, which is right or a surprise; and some values callers make up. */
function missing(policies: Policies): Found[] {
  return asked(policies).flatMap((policy) =>
    policy.parts.flatMap((part, index) => {
      const whose = lacking(part, policy)
      if (whose === undefined) return []
      const place = ['policies', policy.name, 'per', ...(Array.isArray(policy.entry.per) ? [index] : [])]
      const chosen = isMadeUp(part, policy) ? `; and callers who make up ${part.text} have a bucket for each` : ''
      return [note(place, `${whose} share one bucket under the rest of the key${chosen}`)]
    }),
  )
}

/** The requests without a part of a key; undefined where there are none. */
function lacking({ kind, text }: KeyPart, { identity }: Policy): string | undefined {
  switch (kind) {
    case 'address':
    case 'service':
    case 'route':
    case 'param':
      return undefined
    case 'plan':
      return identity === 'client' || identity === 'user' ? undefined : 'callers whom nobody verified'
    case 'api-key':
      return 'requests without a credential'
    default:
      return kind === identity ? undefined : `requests without ${text}`
  }
}

/** True where nothing of a key says who asks, and the caller alone says what stands in a part of it. */
function isMadeUp({ kind }: KeyPart, { parts, identity }: Policy): boolean {
  if (identity === 'client' || identity === 'user') return false
  const free: readonly PartKind[] = ['header', 'cookie', 'query', 'api-key']
  const known: readonly PartKind[] = ['address', 'client', 'user', 'tenant']
  return free.includes(kind) && !parts.some((part) => known.includes(part.kind))
}

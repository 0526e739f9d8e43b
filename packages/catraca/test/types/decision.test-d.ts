import type {
  CheckCode,
  Code,
  codes,
  Decision,
  DiagnosisCode,
  ErrorCode,
  Events,
  PolicyDecision,
  Reason,
} from 'catraca'
import { CatracaError, createLimiter, isCatracaError, tokenBucket } from 'catraca'
import { expectTypeOf, test } from 'vitest'

const limiter = createLimiter(tokenBucket({ limit: 5, window: '1m' }))

test('a decision has every field of the design, with its type', () => {
  expectTypeOf<Decision['allowed']>().toEqualTypeOf<boolean>()
  expectTypeOf<Decision['policy']>().toEqualTypeOf<string>()
  expectTypeOf<Decision['limit']>().toEqualTypeOf<number>()
  expectTypeOf<Decision['remaining']>().toEqualTypeOf<number>()
  expectTypeOf<Decision['retryAfterMs']>().toEqualTypeOf<number>()
  expectTypeOf<Decision['resetAfterMs']>().toEqualTypeOf<number>()
  expectTypeOf<Decision['delayMs']>().toEqualTypeOf<number>()
  expectTypeOf<Decision['charged']>().toEqualTypeOf<number>()
  expectTypeOf<Decision['receipt']>().toEqualTypeOf<string>()
  expectTypeOf<Decision['degraded']>().toEqualTypeOf<boolean>()
  expectTypeOf<Decision['reason']>().toEqualTypeOf<Reason>()
  expectTypeOf<Decision['policies']>().toExtend<readonly PolicyDecision[]>()
  expectTypeOf<Decision['release']>().toEqualTypeOf<() => void>()
})

test('its figures are read only', () => {
  const decision = limiter.take('k')
  // @ts-expect-error a getter
  decision.allowed = true
  // @ts-expect-error a getter
  decision.remaining = 5
  // @ts-expect-error read only
  decision.reason = 'ok'
})

test('reasons are a closed set', () => {
  expectTypeOf<Reason>().toEqualTypeOf<
    | 'ok'
    | 'limited'
    | 'impossible'
    | 'blocked'
    | 'concurrency'
    | 'quota'
    | 'queue-full'
    | 'ceiling'
    | 'store-closed'
    | 'aborted'
  >()
})

test('each policy of a decision is plain data', () => {
  expectTypeOf<keyof PolicyDecision>().toEqualTypeOf<
    'policy' | 'allowed' | 'limit' | 'remaining' | 'retryAfterMs' | 'resetAfterMs' | 'mode' | 'wouldDeny'
  >()
})

test('codes are the keys of the map, each thrown, diagnosed or found by a check', () => {
  expectTypeOf<Code>().toEqualTypeOf<keyof typeof codes>()
  expectTypeOf<ErrorCode | DiagnosisCode | CheckCode>().toEqualTypeOf<Code>()
  expectTypeOf<ErrorCode & DiagnosisCode>().toEqualTypeOf<never>()
  expectTypeOf<Events['diagnosis']['code']>().toEqualTypeOf<DiagnosisCode>()
})

test('an error is narrowed to its code', () => {
  const caught: unknown = null
  if (isCatracaError(caught)) {
    expectTypeOf(caught).toEqualTypeOf<CatracaError>()
    expectTypeOf(caught.code).toEqualTypeOf<ErrorCode>()
    expectTypeOf(caught.help).toEqualTypeOf<string>()
  }
  // @ts-expect-error a code that does not exist
  throw new CatracaError('CATRACA_NOPE', 'message')
})

test('listeners get the event of their name', () => {
  limiter.on('decision', (event) => expectTypeOf(event.decision).toEqualTypeOf<Decision>())
  limiter.on('nearLimit', (event) => expectTypeOf(event).toEqualTypeOf<Events['nearLimit']>())
  limiter.on('clock.step', (event) => expectTypeOf(event.source).toEqualTypeOf<'clock' | 'state'>())
  // @ts-expect-error nearlimit is misspelt
  limiter.on('nearlimit', () => {})
})

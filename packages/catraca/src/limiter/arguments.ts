import { Decision, type Issuer, type Policy } from '../core/decision.ts'
import { CatracaError, show } from '../core/errors.ts'
import { rejectUnknown } from '../core/parameters.ts'
import type { Rule } from '../core/rule.ts'

/** One rule, or several by name: a stack, in which all must pass and either all or none are charged. */
export type Rules = Rule | Readonly<Record<string, Rule>>
/** A text for one rule; for a stack an object with a text for each name. */
export type Keys<R extends Rules> = R extends Rule ? string : { readonly [Name in keyof R]: string }
/** As {@link Keys}, with names left out where they are not meant. */
export type SomeKeys<R extends Rules> = R extends Rule ? string : { readonly [Name in keyof R]?: string }

/** The key of a limiter of one rule. */
export function checkKey(key: unknown): string {
  if (typeof key !== 'string') throw keyInvalid(key, 'key')
  return key
}

/** The keys of a stack, an object. */
export function checkKeys(keys: unknown): Readonly<Record<string, unknown>> {
  if (typeof keys !== 'object' || keys === null) throw keyInvalid(keys, 'keys')
  return keys as Readonly<Record<string, unknown>>
}

/** The key of one policy of a stack. */
export function keyOf(keys: Readonly<Record<string, unknown>>, name: string): string {
  const key = keys[name]
  if (typeof key !== 'string') throw keyInvalid(key, `keys.${name}`)
  return key
}

/** Runs over the policies that `keys` names: the one there is, or some of a stack. */
export function forEachKey(
  policies: readonly Policy[],
  stack: boolean,
  keys: unknown,
  run: (policy: number, key: string) => void,
): void {
  if (!stack) {
    run(0, checkKey(keys))
    return
  }
  const named = checkKeys(keys)
  const names = policies.map(({ name }) => name)
  rejectUnknown(names, keys, 'keys')
  for (const [policy, name] of names.entries()) {
    if (Object.hasOwn(named, name) && named[name] !== undefined) run(policy, keyOf(named, name))
  }
}

/** Throws for options of a question that are unknown. */
export function checkTakeOptions(options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    rejectUnknown(known, options, 'options')
  for (const name in options as object) if (!known.includes(name)) rejectUnknown(known, options, 'options')
}

/** Throws for a decision that another limiter made. */
export function checkOwn(decision: unknown, issuer: Issuer, name: string): void {
  if (decision instanceof Decision && decision.source.issuer === issuer) return
  throw new CatracaError('CATRACA_DECISION_FOREIGN', `the decision was made by another limiter than ${show(name)}`)
}

export function limiterClosed(name: string): CatracaError {
  return new CatracaError('CATRACA_LIMITER_CLOSED', `limiter ${show(name)} was closed`)
}

export function optionInvalid(path: string, value: unknown, allowed: string): CatracaError {
  return new CatracaError('CATRACA_OPTION_INVALID', `${path} is ${show(value)}; allowed: ${allowed}`, { path, value })
}

export function keyInvalid(key: unknown, path: string): CatracaError {
  const allowed = path === 'keys' ? 'an object with a text for each policy' : 'a text'
  return new CatracaError('CATRACA_KEY_INVALID', `${path} is ${show(key)}; allowed: ${allowed}`, { path, value: key })
}

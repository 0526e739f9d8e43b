import { CatracaError, codes, type ErrorCode } from 'catraca'
import { expect } from 'vitest'

/** What a failing call must say. */
export interface Expected {
  code: ErrorCode
  /** Path of the option or argument; left out where the error is about the call as a whole. */
  path?: string
  /** What the message must contain: the value that was found and what is allowed. */
  says: readonly string[]
}

/** A call that must fail, with an error that names its code, its page, the place, the value and what is allowed. */
export function expectFailure(call: () => unknown, { code, path, says }: Expected): CatracaError {
  let caught: unknown
  try {
    call()
  } catch (error) {
    caught = error
  }
  expect(caught, 'nothing was thrown').toBeInstanceOf(CatracaError)
  const error = caught as CatracaError
  expect(error.code).toBe(code)
  expect(codes[error.code].kind).toBe('error')
  expect(error.help).toBe(`docs/errors/${code}.md`)
  expect(error.name).toBe('CatracaError')
  expect(error.path).toBe(path)
  for (const part of [code, ...says, ...(path === undefined ? [] : [path])]) expect(error.message).toContain(part)
  return error
}

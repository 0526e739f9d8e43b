/** Options of {@link isDependencyFailure}. */
export interface DependencyFailureOptions {
  /** Whether 429 counts as a failure. Default false: the dependency works and limits us, which is no reason to stop. */
  readonly tooManyRequests?: boolean
}

/**
 * Whether an answer of an HTTP dependency counts as a failure for a breaker: no answer at all (`undefined`), 5xx, and
 * 429 where that is asked for. A breaker watches results of a dependency, a limiter the volume of a client.
 */
export function isDependencyFailure(
  status: number | undefined,
  { tooManyRequests = false }: DependencyFailureOptions = {},
): boolean {
  if (status === undefined) return true
  return status >= 500 || (status === 429 && tooManyRequests)
}

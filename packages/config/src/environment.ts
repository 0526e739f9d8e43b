/** The variables a file may read. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A text in which variables were filled in. */
export interface Filled {
  readonly text: string
  /** True when there was something to fill in. */
  readonly changed: boolean
  /** Variables that are not set and have no default. */
  readonly unset: readonly string[]
}

const reference = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}/g

/**
 * Fills in `${NAME}` and `${NAME:default}`. A variable that is set to nothing counts as set. `$${` stands for `${` itself.
 */
export function fillIn(text: string, environment: Environment): Filled {
  const unset: string[] = []
  let changed = false
  const filled = text.replace(reference, (whole, name: string | undefined, standard: string | undefined) => {
    changed = true
    if (name === undefined) return '${'
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined
    if (value === undefined && standard === undefined) unset.push(name)
    return value ?? standard ?? whole
  })
  return { text: filled, changed, unset }
}

/** What of an `AbortSignal` is used. */
export interface Signal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

interface Watched {
  readonly tasks: Set<() => void>
  readonly listener: () => void
}

/** One listener for all who wait under a signal: engines warn of many. */
const watched = new WeakMap<Signal, Watched>()

/** Runs `task` once when the signal aborts, last come first; returns the way to stop, after the last of which nobody listens. */
export function onAbort(signal: Signal, task: () => void): () => void {
  const known = watched.get(signal) ?? watch(signal)
  known.tasks.add(task)
  return () => {
    known.tasks.delete(task)
    if (known.tasks.size > 0 || watched.get(signal) !== known) return
    signal.removeEventListener('abort', known.listener)
    watched.delete(signal)
  }
}

function watch(signal: Signal): Watched {
  const tasks = new Set<() => void>()
  const listener = (): void => {
    for (const task of [...tasks].toReversed()) task()
  }
  const known = { tasks, listener }
  watched.set(signal, known)
  signal.addEventListener('abort', listener)
  return known
}

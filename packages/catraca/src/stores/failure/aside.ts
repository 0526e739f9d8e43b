/**
 * Runs a hook. What a listener behind it throws is the listener's fault: it must neither turn a decision into an error nor
 * keep others from hearing, and is reported as a rejection that nobody handles.
 */
export function aside(hook: () => void): void {
  try {
    hook()
  } catch (error) {
    void Promise.reject(error)
  }
}

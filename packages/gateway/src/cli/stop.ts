/**
 * Resolves when the process is asked to end: by Ctrl-C, by `SIGTERM`, or because the parent process that holds the other
 * end of its channel is gone. A second request ends the process at once.
 */
export function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false
    const ask = (): void => {
      if (asked) process.exit(1)
      asked = true
      resolve()
    }
    process.on('SIGINT', ask)
    process.on('SIGTERM', ask)
    process.once('disconnect', () => {
      if (!asked) ask()
    })
    // It may have gone before anyone listened.
    if ('connected' in process && !process.connected) ask()
  })
}

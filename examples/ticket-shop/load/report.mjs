/**
 * @typedef {object} Result
 * @property {number} sent
 * @property {number} seconds From the first to the last that was sent.
 * @property {Record<string, number>} statuses How many answers of each status, sorted by status.
 * @property {number} errors How many had no answer, or half of one.
 * @property {Record<string, number>} reasons What the errors were.
 * @property {number} unanswered How many were not waited for any longer.
 */

/**
 * @param {import('./sender.mjs').Sender} sender
 * @param {number} elapsedMs
 * @returns {Result}
 */
export function resultOf({ sent, statuses, errors, unanswered }, elapsedMs) {
  return {
    sent,
    seconds: Math.round(elapsedMs / 100) / 10,
    // Numbers as names of an object come in their order.
    statuses: Object.fromEntries(statuses),
    errors: [...errors.values()].reduce((sum, count) => sum + count, 0),
    reasons: Object.fromEntries(errors),
    unanswered,
  }
}

/**
 * The result as lines for people: counts are aligned.
 * @param {Result} result
 */
export function table({ sent, seconds, statuses, errors, reasons, unanswered }) {
  const counts = Object.entries(statuses)
  const width = Math.max(0, ...counts.map(([, count]) => String(count).length))
  const why = Object.entries(reasons).map(([code, count]) => `${code} ${count}`)
  return [
    `${sent} sent in ${seconds.toFixed(1)} s`,
    ...counts.map(([status, count]) => `${status}  ${String(count).padStart(width)}`),
    `errors ${errors}${why.length > 0 ? ` (${why.join(', ')})` : ''}`,
    ...(unanswered > 0 ? [`unanswered ${unanswered}`] : []),
    '',
  ].join('\n')
}

/**
 * A line that is written over itself, on a terminal only. It goes to the error output: the result may go to a file.
 * @param {import('./sender.mjs').Sender} sender
 * @param {number} count How many are to be sent.
 */
export function showProgress(sender, count) {
  const { stderr } = process
  if (!stderr.isTTY) return () => {}
  const timer = setInterval(() => {
    const counts = [...sender.statuses].toSorted(([one], [other]) => one - other)
    stderr.write(
      `\r\u001B[K${sender.sent}/${count}  ${counts.map(([status, seen]) => `${status}: ${seen}`).join('  ')}`,
    )
  }, 200)
  return () => {
    clearInterval(timer)
    stderr.write('\r\u001B[K')
  }
}

import { once } from 'node:events'
import type { AccessEntry } from '../options.ts'

const flushEveryMs = 50

/** Prints a line for each request; lines are collected for a moment, so that printing does not slow requests down. */
export interface AccessLog {
  write(entry: AccessEntry): void
  /** Prints what is left. */
  end(): Promise<void>
}

/** An access log; what was collected goes to `print`. Default: the standard output. */
export function accessLog(form: 'text' | 'json', print = printer()): AccessLog {
  const format = form === 'json' ? JSON.stringify : textLine
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const flush = (): Promise<void> | undefined => {
    timer = undefined
    const printed = lines
    lines = ''
    return printed === '' ? undefined : print(printed)
  }
  return {
    write(entry) {
      lines += `${format(entry)}\n`
      timer ??= setTimeout(() => void flush(), flushEveryMs)
    },
    async end() {
      clearTimeout(timer)
      await flush()
    },
  }
}

/** Prints lines on the standard output; what it gives resolves when there is room for more. */
export function printer(): (lines: string) => Promise<void> {
  let gone = false
  // A reader that went away must not end the gateway.
  process.stdout.on('error', () => {
    gone = true
  })
  return async (lines) => {
    if (!gone) process.stdout.write(lines)
    if (process.stdout.writableNeedDrain && !gone) await once(process.stdout, 'drain')
  }
}

function textLine(entry: AccessEntry): string {
  const { time, address, method, url, status, durationMs, client, decision, policy, remaining, retryAfterMs } = entry
  const who = client === undefined ? address : `${address} ${client}`
  const rest = [
    ...(policy === undefined ? [] : [`${policy} ${remaining} left`]),
    ...(retryAfterMs === undefined ? [] : [`retry after ${retryAfterMs} ms`]),
    ...(entry.degraded === true ? ['without the store'] : []),
    ...(entry.wouldRefuse === undefined ? [] : [`would refuse: ${entry.wouldRefuse.join(', ')}`]),
  ]
  // A request target holds no line breaks; quotes are all that could end it early.
  return `${time} ${who} "${method} ${url.replaceAll('"', '%22')}" ${status} ${durationMs.toFixed(1)} ms ${decision}${rest.length > 0 ? ` (${rest.join('; ')})` : ''}`
}

import { alarmAfter } from '../core/alarms.ts'
import { elapsedMs } from '../core/clock.ts'

/** Throws where two plain values differ. */
export function equal(actual: unknown, expected: unknown, what: string): void {
  const [found, wanted] = [textOf(actual), textOf(expected)]
  if (found !== wanted) throw new Error(`${what}: ${found}; expected: ${wanted}`)
}

/** Throws where a text does not look as it should. */
export function like(actual: string | undefined, expected: RegExp, what: string): void {
  if (actual === undefined || !expected.test(actual)) {
    throw new Error(`${what}: ${textOf(actual)}; expected: ${String(expected)}`)
  }
}

/** Far longer than anything here takes; only a test that fails waits for it. */
const patienceMs = 10_000

/** Waits until something is as expected. */
export async function eventually(find: () => unknown, expected: unknown, what: string): Promise<void> {
  const wanted = textOf(expected)
  const began = elapsedMs()
  for (;;) {
    const found = textOf(await find())
    if (found === wanted) return
    if (elapsedMs() - began > patienceMs) throw new Error(`${what}: ${found}; expected: ${wanted}`)
    await pause(2)
  }
}

/** Keeps the process alive meanwhile: a runner of tests may have nothing else that does. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    alarmAfter(ms * 1_000, resolve)
  })
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (part === undefined ? 'undefined' : part)) ?? 'undefined'
}

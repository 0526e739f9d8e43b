import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** What one drill takes of the processors, in processors, with something to spare. */
const needed = 0.9
const lookMs = 300
const lock = join(tmpdir(), 'catraca-drill')

/**
 * Waits until the machine can take a drill: at once where no other one runs, beside another only where processors are
 * idle enough, else after it. Resolves to what ends the turn.
 */
export async function turn(): Promise<() => void> {
  for (;;) {
    if (take()) return () => rmSync(lock, { recursive: true, force: true })
    const idle = idleMeter()
    await sleep(lookMs)
    if (idle() >= needed) return () => {}
  }
}

/** Begins to measure; what is returned tells how many processors were idle since, on average. */
export function idleMeter(): () => number {
  const before = read()
  return () => {
    const now = read()
    return now.all === before.all ? 0 : (cpus().length * (now.idle - before.idle)) / (now.all - before.all)
  }
}

function read(): { idle: number; all: number } {
  const times = cpus().map((cpu) => cpu.times)
  const idle = times.reduce((sum, one) => sum + one.idle, 0)
  return { idle, all: times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, idle) }
}

function take(): boolean {
  const owner = join(lock, 'pid')
  try {
    mkdirSync(lock)
    writeFileSync(owner, String(process.pid))
    return true
  } catch {
    if (!lives(owner)) rmSync(lock, { recursive: true, force: true })
    return false
  }
}

/** False where the process that has the turn died with it. */
function lives(owner: string): boolean {
  try {
    process.kill(Number(readFileSync(owner, 'utf8')), 0)
    return true
  } catch (error) {
    // Just taken, and not signed yet.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

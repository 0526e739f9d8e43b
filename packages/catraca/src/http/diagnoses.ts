import { type DiagnosisCode, helpPage } from '../core/errors.ts'
import type { Events } from '../core/events.ts'

/** Tells likely mistakes, each code once. */
export class Diagnoses {
  private readonly told = new Set<DiagnosisCode>()
  private readonly emit: (event: Events['diagnosis']) => void

  constructor(emit: (event: Events['diagnosis']) => void) {
    this.emit = emit
  }

  /** True for a code that was told: there is no need to look for it any more. */
  has(code: DiagnosisCode): boolean {
    return this.told.has(code)
  }

  tell(code: DiagnosisCode, message: string): void {
    if (this.told.has(code)) return
    this.told.add(code)
    this.emit({ code, help: helpPage(code), message })
  }

  /** A memory store counts for one process: workers of a cluster that share a port admit the limit each. */
  memoryStore(): void {
    if (!inClusterWorker()) return
    const message =
      'the limits are counted in the memory of this cluster worker alone, so each worker admits the whole limit; use ' +
      'workerStore of catraca/workers, or redisStore'
    this.tell('CATRACA_MEMORY_IN_CLUSTER', message)
  }

  /** A request that was counted under this name before. */
  twice(policy: string): void {
    const message =
      `a request was counted a second time by ${JSON.stringify(policy)}: the limit is mounted twice, and each request ` +
      'costs double; mount it once'
    this.tell('CATRACA_COUNTED_TWICE', message)
  }
}

function inClusterWorker(): boolean {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => { isWorker?: boolean } | undefined }
  }
  try {
    return process?.getBuiltinModule?.('node:cluster')?.isWorker === true
  } catch {
    return false
  }
}

import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { fileError, type GatewayDocument, type Read, readGatewayFile } from '@catraca/config'

/** Editors write a file in several steps; what they write within this time is read once. */
const settleMs = 100

/** Reads a gateway file. Throws an error that lists every mistake with its line, or says that there is no such file. */
export async function loadGatewayFile(file: string): Promise<GatewayDocument> {
  const read = await readFileOrSay(file)
  if (read.document === undefined) throw fileError(read.problems)
  return read.document
}

/** The file with its problems. Throws when it cannot be opened. */
export async function readFileOrSay(file: string): Promise<Read<GatewayDocument>> {
  try {
    return await readGatewayFile(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'does not exist' : code === 'EISDIR' ? 'is a folder' : `cannot be read (${code})`
    throw new Error(`${file} ${why}`, { cause: error })
  }
}

/** Calls `changed` when a file was written or replaced; returns the way to stop. */
export function watchFile(file: string, changed: () => void): () => void {
  const name = basename(file)
  let timer: NodeJS.Timeout | undefined
  // The folder is watched, because editors replace files and a watch on a file stays with the old one.
  const watcher = watch(dirname(file), (_event, which) => {
    if (which !== null && which !== name) return
    clearTimeout(timer)
    timer = setTimeout(changed, settleMs)
  })
  watcher.on('error', () => {})
  process.on('SIGHUP', changed)
  return () => {
    watcher.close()
    clearTimeout(timer)
    process.off('SIGHUP', changed)
  }
}

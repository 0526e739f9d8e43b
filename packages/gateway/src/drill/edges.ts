import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A service that says yes; gives its address. */
export async function startUpstream(ends: (() => unknown)[]): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    request.once('end', () => response.end('ok'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const killAfterMs = 5_000

/** Starts edges by one document, each in a process of its own, and gives their addresses. What is to be ended is added. */
export async function startEdges(count: number, document: unknown, ends: (() => unknown)[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'catraca-drill-'))
  ends.push(() => rm(folder, { recursive: true, force: true }))
  const config = join(folder, 'catraca.json')
  await writeFile(config, JSON.stringify(document))
  return Promise.all(Array.from({ length: count }, () => startEdge(config, ends)))
}

/** Starts an edge in a process of its own and gives its address. */
async function startEdge(config: string, ends: (() => unknown)[]): Promise<string> {
  const command = fileURLToPath(new URL('../../bin/catraca.js', import.meta.url))
  const child = spawn(process.execPath, [command, 'up', '-c', config], {
    // The channel breaks when this process dies, however it dies; the edge then ends by itself.
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  ends.push(() => endChild(child))
  let said = ''
  child.stderr?.on('data', (chunk) => {
    said = `${said}${chunk}`.slice(-2_000)
  })
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve((message as { ready: string }).ready))
    child.once('exit', (code) => reject(new Error(`an edge of the drill ended with code ${code}: ${said.trim()}`)))
  })
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const kill = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  await ended
  clearTimeout(kill)
}

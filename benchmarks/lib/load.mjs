import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'

const many = cpus().length > 1
const pinned = (core, command, args) => (many ? ['taskset', ['-c', String(core), command, ...args]] : [command, args])

/** Starts a server script on the second core; it says where it listens and, when asked, how much CPU it used. */
export async function startServer(script, args, core = 1) {
  const [command, all] = pinned(core, process.execPath, [script, ...args])
  const child = spawn(command, all, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const [{ port }] = await once(child, 'message')
  return {
    port,
    async cpuUs() {
      child.send('cpu')
      const [{ us }] = await once(child, 'message')
      return us
    },
    async stop() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

/** What a server script answers its parent: where it listens, and the CPU it used so far. */
export function report(port) {
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send({ us: user + system })
  })
  process.send({ port })
}

/** Asks as fast as answers come for some seconds, from the first core. Gives requests, their rate, and answers not 2xx. */
export async function load(url, seconds, connections = 32) {
  const [command, all] = pinned(0, 'wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, url])
  const child = spawn(command, all, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const chunk of child.stdout) text += chunk
  const [, requests] = /(\d+) requests in/.exec(text) ?? []
  const [, rate] = /Requests\/sec:\s+([\d.]+)/.exec(text) ?? []
  if (requests === undefined || rate === undefined) throw new Error(`wrk said:\n${text}`)
  return {
    requests: Number(requests),
    perSecond: Number(rate),
    bad: Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0),
  }
}

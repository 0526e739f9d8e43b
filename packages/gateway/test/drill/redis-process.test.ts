import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RedisProcess, type RedisProcessOptions } from '@catraca/gateway/redis-server'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { deadOrigin, until } from '../helpers.ts'

async function start(options?: RedisProcessOptions): Promise<RedisProcess> {
  const redis = await RedisProcess.start(options)
  onTestFinished(() => redis.stop())
  return redis
}

async function folderOf(redis: RedisProcess): Promise<string> {
  const [, dir] = (await redis.command('CONFIG', 'GET', 'dir')) as string[]
  return dir ?? ''
}

/** Whether a process runs; one that has ended and waits for its parent does not. */
async function runs(pid: number): Promise<boolean> {
  const ps = spawn('ps', ['-o', 'stat=', '-p', String(pid)], { stdio: ['ignore', 'pipe', 'ignore'] })
  let state = ''
  ps.stdout.on('data', (chunk: Buffer) => (state += chunk.toString()))
  await once(ps, 'close')
  return state.trim() !== '' && !state.startsWith('Z')
}

async function ends(pid: number): Promise<void> {
  for (let check = 0; await runs(pid); check++) {
    if (check === 100) throw new Error(`process ${pid} still runs`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

describe('RedisProcess', () => {
  it('answers on its own port, from memory alone', async () => {
    const [one, other] = [await start(), await start()]
    expect(one.url).toBe(`redis://127.0.0.1:${one.port}`)
    expect(await one.command('SET', 'key', 'value')).toBe('OK')
    expect(await one.command('GET', 'key')).toBe('value')
    expect(await other.command('GET', 'key')).toBe(null)
    expect(await one.command('CONFIG', 'GET', 'save')).toEqual(['save', ''])
    expect(await one.command('CONFIG', 'GET', 'appendonly')).toEqual(['appendonly', 'no'])
    await expect(one.command('NONSENSE')).rejects.toThrow('unknown command')
  })

  it('takes arguments, a configuration and a folder that stays', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'catraca-drill-test-'))
    onTestFinished(() => rmSync(dir, { recursive: true }))
    const redis = await start({ dir, args: ['--maxmemory', '8mb'], config: 'maxclients 77\n' })
    expect(await redis.command('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', '8388608'])
    expect(await redis.command('CONFIG', 'GET', 'maxclients')).toEqual(['maxclients', '77'])
    expect(await folderOf(redis)).toBe(dir)
    await redis.stop()
    expect(existsSync(dir)).toBe(true)
  })

  it('is gone after a kill and comes back empty at the same port', async () => {
    const redis = await start({ args: ['--maxmemory', '8mb'] })
    const { pid, port } = redis
    await redis.command('SET', 'key', 'value')
    await redis.kill()
    await redis.kill()
    expect(redis.pid).toBe(undefined)
    await expect(redis.command('PING')).rejects.toThrow()
    await redis.restart()
    expect([redis.port, redis.pid === pid]).toEqual([port, false])
    expect(await redis.command('GET', 'key')).toBe(null)
    expect(await redis.command('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', '8388608'])
    await redis.restart()
    expect(await redis.command('PING')).toBe('PONG')
  })

  it('answers nothing while paused, and what it was asked once resumed', async () => {
    const redis = await start()
    redis.pause()
    let reply: unknown
    const asked = redis.command('PING').then((answer) => (reply = answer))
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(reply).toBe(undefined)
    redis.resume()
    expect(await asked).toBe('PONG')
  })

  it('stops for good, paused or not, as often as it is told, and takes its folder along', async () => {
    const redis = await start()
    const [dir, pid] = [await folderOf(redis), redis.pid ?? 0]
    expect(existsSync(dir)).toBe(true)
    redis.pause()
    await Promise.all([redis.stop(), redis.stop()])
    await redis.stop()
    expect([await runs(pid), existsSync(dir)]).toEqual([false, false])
    await expect(redis.restart()).rejects.toThrow('stopped for good')
  })

  it('says the end of the log when the server does not start, and leaves no folder', async () => {
    const before = folders()
    await expect(start({ args: ['--maxmemory', 'much'] })).rejects.toThrow('redis-server ended at its start')
    await expect(start({ config: 'maxclients 1\n', args: ['--port', 'x'] })).rejects.toThrow('ended at its start')
    expect(folders().filter((name) => !before.includes(name))).toEqual([])
  })

  it('says when the port it was given is taken', async () => {
    const redis = await start()
    await expect(start({ port: redis.port })).rejects.toThrow(`port ${redis.port} is already in use`)
    expect(await redis.command('PING')).toBe('PONG')
    const port = Number(new URL(await deadOrigin()).port)
    expect((await start({ port })).port).toBe(port)
  })

  it('takes another port when the first it chose is taken', async () => {
    const first = await start()
    vi.spyOn(Math, 'random').mockReturnValueOnce((first.port - 10_000) / 6_000 + 1e-9)
    onTestFinished(() => void vi.restoreAllMocks())
    const other = await start()
    expect(Math.random).toHaveBeenCalledTimes(2)
    expect(other.port).not.toBe(first.port)
    expect([await first.command('SET', 'key', '1'), await other.command('GET', 'key')]).toEqual(['OK', null])
  })

  it.each(['SIGKILL', 'SIGTERM'] as const)('ends with a parent that dies by %s, its folder too', async (signal) => {
    const script = `import { RedisProcess } from '@catraca/gateway/redis-server'
      const redis = await RedisProcess.start()
      const [, dir] = await redis.command('CONFIG', 'GET', 'dir')
      redis.pause()
      console.log(JSON.stringify({ pid: redis.pid, dir }))`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void parent.kill('SIGKILL'))
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const { pid, dir } = JSON.parse(line.toString()) as { pid: number; dir: string }
    expect([await runs(pid), existsSync(dir)]).toEqual([true, true])
    parent.kill(signal)
    await ends(pid)
    await until(() => !existsSync(dir))
  })
})

function folders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('catraca-redis-'))
}

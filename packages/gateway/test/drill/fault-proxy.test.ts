import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { FaultProxy } from '@catraca/gateway/redis-server'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../helpers.ts'

/** A service that sends back what it gets. */
async function startEcho(): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.pipe(socket)
    onTestFinished(() => void socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function startProxy(target?: number): Promise<FaultProxy> {
  const proxy = await FaultProxy.start(target ?? (await startEcho()))
  onTestFinished(() => proxy.close())
  return proxy
}

interface Client {
  readonly socket: Socket
  /** All that came so far. */
  readonly got: () => string
  /** The code of the error that ended it, 'end' when the other side closed, undefined while it is open. */
  readonly ended: () => string | undefined
}

async function open(port: number): Promise<Client> {
  const socket = connect(port, '127.0.0.1')
  let got = ''
  let ended: string | undefined
  socket.on('data', (chunk) => (got += chunk.toString()))
  socket.on('end', () => (ended ??= 'end'))
  socket.on('error', (error: NodeJS.ErrnoException) => (ended ??= error.code))
  onTestFinished(() => void socket.destroy())
  await new Promise<void>((resolve) => {
    socket.on('connect', resolve)
    socket.on('close', () => resolve())
  })
  return { socket, got: () => got, ended: () => ended }
}

/** Time in which something must not happen, or bytes are on their way to the proxy. */
function quiet(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

describe('FaultProxy', () => {
  it('passes bytes and ends both ways', async () => {
    const proxy = await startProxy()
    const client = await open(proxy.port)
    client.socket.end('hello')
    await until(() => client.got() === 'hello' && client.ended() === 'end')
    await until(() => proxy.connections === 0)
    expect(proxy.url).toBe(`redis://127.0.0.1:${proxy.port}`)
  })

  it('passes a mebibyte unchanged', async () => {
    const proxy = await startProxy()
    const client = await open(proxy.port)
    const text = 'catraca '.repeat(131_072)
    client.socket.end(text)
    await until(() => client.ended() === 'end')
    expect(client.got() === text).toBe(true)
  })

  it('counts the connections that are open', async () => {
    const proxy = await startProxy()
    const [first] = [await open(proxy.port), await open(proxy.port)]
    await until(() => proxy.connections === 2)
    first.socket.destroy()
    await until(() => proxy.connections === 1)
  })

  it('delays each chunk in each direction and keeps their order', async () => {
    const proxy = await startProxy()
    const client = await open(proxy.port)
    await proxy.set({ delayMs: 100 })
    const start = performance.now()
    client.socket.write('1')
    await until(() => client.got() === '1')
    expect(performance.now() - start).toBeGreaterThan(190)
    client.socket.write('2')
    await quiet(20)
    await proxy.set('pass')
    client.socket.write('3')
    await until(() => client.got().length === 3)
    expect(client.got()).toBe('123')
  })

  it('delivers nothing as a black hole, and resets what lost bytes when it passes again', async () => {
    const proxy = await startProxy()
    const [silent, client] = [await open(proxy.port), await open(proxy.port)]
    client.socket.write('before ')
    await until(() => client.got() === 'before ')
    await proxy.set('blackhole')
    const late = await open(proxy.port)
    client.socket.write('lost')
    late.socket.write('lost')
    await until(() => proxy.connections === 3)
    await quiet(100)
    expect([client.got(), client.ended(), late.got(), late.ended()]).toEqual(['before ', undefined, '', undefined])
    await proxy.set('pass')
    await until(() => client.ended() === 'ECONNRESET' && late.ended() === 'ECONNRESET')
    silent.socket.write('kept')
    await until(() => silent.got() === 'kept')
  })

  it('drops as a black hole what a delay still held', async () => {
    const proxy = await startProxy()
    const client = await open(proxy.port)
    await proxy.set({ delayMs: 50 })
    client.socket.write('lost')
    await proxy.set('blackhole')
    await quiet(150)
    await proxy.set('pass')
    await until(() => client.ended() === 'ECONNRESET')
    expect(client.got()).toBe('')
  })

  it('resets connections, old and new', async () => {
    const proxy = await startProxy()
    const old = await open(proxy.port)
    await until(() => proxy.connections === 1)
    await proxy.set('reset')
    const late = await open(proxy.port)
    await until(() => old.ended() === 'ECONNRESET' && late.ended() === 'ECONNRESET')
    expect(proxy.connections).toBe(0)
  })

  it('refuses connections, then takes them again at the same port', async () => {
    const proxy = await startProxy()
    const old = await open(proxy.port)
    await until(() => proxy.connections === 1)
    await proxy.set('refuse')
    const refused = await open(proxy.port)
    expect(refused.ended()).toBe('ECONNREFUSED')
    await until(() => old.ended() === 'ECONNRESET')
    await proxy.set('pass')
    const back = await open(proxy.port)
    back.socket.write('back')
    await until(() => back.got() === 'back')
  })

  it('takes another port when the first it chose is taken', async () => {
    const first = await startProxy()
    vi.spyOn(Math, 'random').mockReturnValueOnce((first.port - 10_000) / 6_000 + 1e-9)
    onTestFinished(() => void vi.restoreAllMocks())
    const other = await startProxy()
    expect(Math.random).toHaveBeenCalledTimes(2)
    expect(other.port).not.toBe(first.port)
  })

  it('resets a client when its target is not there', async () => {
    const target = await startEcho()
    const gone = await FaultProxy.start(target)
    await gone.close()
    await gone.close()
    const client = await open((await startProxy(gone.port)).port)
    await until(() => client.ended() === 'ECONNRESET')
  })
})

import { PassThrough, Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  type ByteGroup,
  byteGroup,
  leakyQueue,
  type Rule,
  type ShapeOptions,
  shape,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const t0 = Date.UTC(2027, 0, 1)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: t0 })
})
afterEach(() => {
  vi.useRealTimers()
})

async function* chunks(count: number, size: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index++) yield new Uint8Array(size).fill(index + 1)
}

/** Reads a shaped stream as fast as it gives; what came so far, and when. */
class Reader {
  readonly pieces: { atMs: number; bytes: number }[] = []
  readonly done: Promise<unknown>

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.done = this.read(stream).catch((error: unknown) => error)
  }

  get bytes(): number {
    return this.until(Infinity)
  }

  until(ms: number): number {
    return this.pieces.reduce((sum, { atMs, bytes }) => (atMs <= ms ? sum + bytes : sum), 0)
  }

  private async read(stream: AsyncIterable<Uint8Array>): Promise<undefined> {
    for await (const piece of stream) this.pieces.push({ atMs: Date.now() - t0, bytes: piece.length })
  }
}

const bytesOf = (limit: number, burst = limit): Rule => tokenBucket({ limit, window: '1s', burst })

describe('the rate', () => {
  test('acceptance 32: of 16 MB at 2 MB/s under a peak of 10 MB/s, 20 MB pass in 2.0 s, then 2 MB/s', async () => {
    const rule = bytesOf(2_000_000, 16_000_000)
    const reader = new Reader(shape(chunks(400, 65_536), rule, { peakBytesPerSecond: 10_000_000 }))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reader.bytes).toBe(10_000_000)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reader.bytes).toBe(20_000_000)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reader.bytes).toBe(22_000_000)
    // Each 50 ms as soon as they are there.
    for (let ms = 2_000; ms <= 3_000; ms += 50) expect(reader.until(ms)).toBe(16_000_000 + 2_000 * ms)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reader.bytes).toBe(24_000_000)
    // Never faster in between, to the byte.
    for (const { atMs } of reader.pieces) {
      const most = Math.min(10_000 * atMs, 16_000_000 + 2_000 * atMs)
      expect(reader.until(atMs)).toBeLessThanOrEqual(most)
    }
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await reader.done).toBeUndefined()
    expect(reader.bytes).toBe(400 * 65_536)
  })

  test('without a peak the burst passes at once', async () => {
    const reader = new Reader(shape(chunks(20, 1_000), bytesOf(1_000, 16_000)))
    await vi.advanceTimersByTimeAsync(0)
    expect(reader.bytes).toBe(16_000)
    await vi.advanceTimersByTimeAsync(4_000)
    expect(reader.bytes).toBe(20_000)
    expect(await reader.done).toBeUndefined()
  })

  test.each([
    ['1 B/s', bytesOf(1, 1), 5, 10, 4_000],
    ['3 B per 10 s', tokenBucket({ limit: 3, window: '10s', burst: 1 }), 3, 4, 6_667],
    ['9 B/s', bytesOf(9, 2), 20, 50, 2_000],
    ['1 MB/s', bytesOf(1_000_000, 100_000), 1_100, 1_000, 1_000],
    ['1 GB/s', bytesOf(1_000_000_000, 200_000_000), 700, 1_000_000, 500],
  ])('%s: every byte comes, when it may', async (_, rule, count, size, ms) => {
    const reader = new Reader(shape(chunks(count, size / (size > 100 ? 1 : size)), rule))
    const total = count * (size / (size > 100 ? 1 : size))
    await vi.advanceTimersByTimeAsync(ms - 60)
    expect(reader.bytes).toBeLessThan(total)
    await vi.advanceTimersByTimeAsync(120)
    expect(reader.bytes).toBe(total)
    expect(await reader.done).toBeUndefined()
    // In no half-open span more than the rule says: from one piece to another, both counted.
    const { limit = 0, windowMs = 0, burst = 0 } = rule.options as Record<string, number>
    for (let from = 0; from < reader.pieces.length; from += 7) {
      let sum = 0
      for (const { atMs, bytes } of reader.pieces.slice(from)) {
        sum += bytes
        const spanMs = atMs - (reader.pieces[from] as { atMs: number }).atMs
        if (sum > burst + (limit * spanMs) / windowMs) expect.fail(`${sum} bytes within ${spanMs} ms`)
      }
    }
  })

  test('pieces are at least a byte, at most the bucket and 50 ms of the rate; chunks are cut and not joined', async () => {
    const reader = new Reader(shape(chunks(3, 1_000), bytesOf(10_000, 300)))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reader.bytes).toBe(3_000)
    for (const { bytes } of reader.pieces) expect(bytes).toBeGreaterThanOrEqual(1)
    expect(Math.max(...reader.pieces.map(({ bytes }) => bytes))).toBe(300)
    const slices = new Reader(shape(chunks(1, 10_000), bytesOf(10_000, 5_000)))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(Math.max(...slices.pieces.map(({ bytes }) => bytes))).toBe(500)
    const small = new Reader(shape(chunks(10, 7), bytesOf(10_000)))
    await vi.advanceTimersByTimeAsync(0)
    expect(small.pieces.map(({ bytes }) => bytes)).toEqual(Array(10).fill(7))
  })

  test('timers do not dominate: about twenty a second, whatever the chunks', async () => {
    const timer = vi.spyOn(globalThis, 'setTimeout')
    const reader = new Reader(shape(chunks(40_000, 100), bytesOf(1_000_000, 1_000_000)))
    await vi.advanceTimersByTimeAsync(3_000)
    expect(reader.bytes).toBe(4_000_000)
    expect(timer.mock.calls.length).toBeLessThanOrEqual(61)
    timer.mockRestore()
  })

  test('keeps the order and the content of what comes', async () => {
    const text = Array.from({ length: 500 }, (_, index) => `${index};`).join('')
    const parts: Buffer[] = []
    const source = Readable.from([Buffer.from(text.slice(0, 777)), Buffer.alloc(0), Buffer.from(text.slice(777))])
    const reading = (async () => {
      for await (const piece of shape(source, bytesOf(1_000, 100))) parts.push(piece as Buffer)
    })()
    await vi.advanceTimersByTimeAsync(10_000)
    await reading
    expect(Buffer.concat(parts).toString()).toBe(text)
  })
})

describe('a group', () => {
  async function shares(group: ByteGroup, sizes: readonly number[], ms: number): Promise<number[]> {
    const readers = sizes.map((size) => new Reader(shape(chunks(1e6, size), group)))
    await vi.advanceTimersByTimeAsync(ms)
    return readers.map(({ bytes }) => bytes)
  }

  test('shares one budget evenly, whatever the chunks', async () => {
    const all = await shares(byteGroup(bytesOf(90_000, 9_000)), [64, 1_000, 65_536], 10_000)
    const sum = all.reduce((a, b) => a + b, 0)
    expect(sum).toBeLessThanOrEqual(9_000 + 900_000)
    expect(sum).toBeGreaterThanOrEqual(890_000)
    for (const one of all) expect(Math.abs(one / (sum / 3) - 1)).toBeLessThan(0.03)
  })

  test('shares it evenly under a peak too', async () => {
    const group = byteGroup(bytesOf(90_000, 9_000), { peakBytesPerSecond: 1_000_000 })
    const all = await shares(group, [64, 1_000, 65_536], 10_000)
    const sum = all.reduce((a, b) => a + b, 0)
    expect(sum).toBeGreaterThanOrEqual(890_000)
    for (const one of all) expect(Math.abs(one / (sum / 3) - 1)).toBeLessThan(0.03)
  })

  test('starves nobody where there are fewer bytes than streams', async () => {
    const all = await shares(byteGroup(bytesOf(1, 1)), [1, 10, 100], 30_500)
    expect(all.reduce((a, b) => a + b, 0)).toBe(31)
    for (const one of all) expect(Math.abs(one - 10)).toBeLessThanOrEqual(1)
  })

  test('gives all of it to who is left, and what an ended stream had not passed on to the others', async () => {
    const group = byteGroup(bytesOf(1_000, 1_000))
    const short = new Reader(shape(chunks(1, 10), group))
    const long = new Reader(shape(chunks(10, 1_000), group))
    await vi.advanceTimersByTimeAsync(2_000)
    expect(short.bytes).toBe(10)
    // In pieces of 50, of which the last is on its way.
    expect(long.bytes).toBeGreaterThan(2_940)
    expect(long.bytes).toBeLessThanOrEqual(2_990)
    await vi.advanceTimersByTimeAsync(8_000)
    expect(long.bytes).toBe(10_000)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('loses nothing to streams that end early', async () => {
    const group = byteGroup(bytesOf(1_000, 1_000))
    // Each takes a piece of 50 and passes one byte on.
    const short = Array.from({ length: 10 }, () => new Reader(shape(chunks(1, 1), group)))
    await vi.advanceTimersByTimeAsync(0)
    const long = new Reader(shape(chunks(10, 1_000), group))
    await vi.advanceTimersByTimeAsync(0)
    expect(short.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(10)
    expect(long.bytes).toBeGreaterThan(990 - 50)
    expect(long.bytes).toBeLessThanOrEqual(990)
  })

  test('has one peak for all', async () => {
    const all = await shares(byteGroup(bytesOf(1_000, 100_000), { peakBytesPerSecond: 9_000 }), [50, 500], 1_000)
    expect(all.reduce((a, b) => a + b, 0)).toBe(9_000)
  })
})

describe('the ends', () => {
  test('is read only when somebody reads', async () => {
    let asked = 0
    const source = {
      async *[Symbol.asyncIterator]() {
        for (;;) {
          asked++
          yield new Uint8Array(10)
        }
      },
    }
    const stream = shape(source, bytesOf(1_000, 1_000))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(asked).toBe(0)
    await stream.next()
    await stream.next()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(asked).toBe(2)
    await stream.return()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('what the source throws is thrown on, after the bytes before it', async () => {
    const source = (async function* () {
      yield new Uint8Array(5)
      throw new Error('the disk is gone')
    })()
    const reader = new Reader(shape(source, bytesOf(10, 2)))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reader.bytes).toBe(5)
    expect(await reader.done).toMatchObject({ message: 'the disk is gone' })
  })

  test('who stops reading closes the source', async () => {
    const closed = vi.fn()
    const source = (async function* () {
      try {
        for (;;) yield new Uint8Array(5)
      } finally {
        closed()
      }
    })()
    for await (const _ of shape(source, bytesOf(10))) break
    expect(closed).toHaveBeenCalledTimes(1)
  })

  test('who stops reading in the middle of a wait does not wait', async () => {
    const closed = vi.fn()
    const source = (async function* () {
      try {
        for (;;) yield new Uint8Array(5)
      } finally {
        closed()
      }
    })()
    const group = byteGroup(tokenBucket({ limit: 1, window: '1h', burst: 3 }))
    const stream = shape(source, group)
    for (let index = 0; index < 3; index++) await stream.next()
    const pending = stream.next()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(vi.getTimerCount()).toBe(1)
    await stream.return()
    expect(await pending).toEqual({ done: true, value: undefined })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    expect([vi.getTimerCount(), closed.mock.calls.length]).toEqual([0, 1])
  })

  test('who never began to read closes the source all the same', async () => {
    const source = new PassThrough()
    const stream = shape(source, bytesOf(1))
    await stream.return()
    expect(source.destroyed).toBe(true)
    expect((await stream.next()).done).toBe(true)
  })

  test('an error of the destination ends a pipeline that waits for bytes', async () => {
    vi.useRealTimers()
    const destination = new Writable({
      write(_chunk, _, done) {
        setImmediate(() => done(new Error('the socket is gone')))
      },
    })
    const rate = tokenBucket({ limit: 1, window: '1h', burst: 5 })
    const timer = vi.spyOn(globalThis, 'setTimeout')
    const clear = vi.spyOn(globalThis, 'clearTimeout')
    const run = pipeline(
      Readable.from(chunks(9, 5)),
      (source: AsyncIterable<Uint8Array>, options?: ShapeOptions) => shape(source, rate, options),
      destination,
    )
    await expect(run).rejects.toThrow('the socket is gone')
    // The timer of its wait, which would keep the process alive for an hour.
    const waits = timer.mock.calls.flatMap(([, ms], index) =>
      (ms ?? 0) > 60_000 ? [timer.mock.results[index]?.value] : [],
    )
    expect(waits).toHaveLength(1)
    expect(clear.mock.calls.map(([one]) => one)).toContain(waits[0])
    timer.mockRestore()
    clear.mockRestore()
  })

  test('an abort while it waits for its turn rejects at once, leaves no timer, and takes nothing from the others', async () => {
    const group = byteGroup(bytesOf(10, 10))
    const controller = new AbortController()
    const reason = new Error('enough')
    const aborted = new Reader(shape(chunks(9, 100), group, { signal: controller.signal }))
    await vi.advanceTimersByTimeAsync(250)
    expect(vi.getTimerCount()).toBe(1)
    controller.abort(reason)
    expect(await aborted.done).toBe(reason)
    expect(vi.getTimerCount()).toBe(0)
    const other = new Reader(shape(chunks(1, 20), group))
    await vi.advanceTimersByTimeAsync(2_000)
    expect(aborted.bytes + other.bytes).toBe(12 + 20)
  })

  test('an abort of one of several leaves the others their turns', async () => {
    const group = byteGroup(bytesOf(10, 1))
    const controller = new AbortController()
    const readers = [0, 1, 2].map(
      (index) => new Reader(shape(chunks(9, 100), group, index === 1 ? { signal: controller.signal } : {})),
    )
    await vi.advanceTimersByTimeAsync(950)
    controller.abort()
    await vi.advanceTimersByTimeAsync(2_000)
    const [a, b, c] = readers.map(({ bytes }) => bytes) as [number, number, number]
    expect(a + b + c).toBe(30)
    expect(Math.abs(a - c)).toBeLessThanOrEqual(1)
    expect(b).toBeLessThanOrEqual(4)
  })

  test('an abort while the source says nothing rejects at once, and closes it', async () => {
    const source = new PassThrough()
    const controller = new AbortController()
    const reader = new Reader(shape(source, bytesOf(10), { signal: controller.signal }))
    await vi.advanceTimersByTimeAsync(10)
    controller.abort(new Error('enough'))
    expect(await reader.done).toMatchObject({ message: 'enough' })
    vi.useRealTimers()
    await new Promise((resolve) => setImmediate(resolve))
    expect(source.destroyed).toBe(true)
  })

  test('an abort before the beginning reads nothing', async () => {
    const source = chunks(1, 1)
    const next = vi.spyOn(source, 'next')
    const reader = new Reader(shape(source, bytesOf(10), { signal: AbortSignal.abort(new Error('never')) }))
    expect(await reader.done).toMatchObject({ message: 'never' })
    expect(next).not.toHaveBeenCalled()
  })

  test('many streams leave no listener on a signal that outlives them', async () => {
    const { signal } = new AbortController()
    const add = vi.spyOn(signal, 'addEventListener')
    const remove = vi.spyOn(signal, 'removeEventListener')
    const reader = new Reader(shape(chunks(5, 4), bytesOf(10, 2), { signal }))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await reader.done).toBeUndefined()
    expect(add.mock.calls.length).toBeGreaterThan(0)
    expect(remove.mock.calls.length).toBe(add.mock.calls.length)
  })

  test('web streams are read and cancelled, also where they cannot be iterated', async () => {
    const cancel = vi.fn()
    const streamOf = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(10)),
        cancel,
      })
    for (const iterable of [true, false]) {
      const web = streamOf()
      const source = iterable ? web : { getReader: () => web.getReader() }
      const stream = shape(source as never, bytesOf(1_000, 100))
      expect((await stream.next()).value).toHaveLength(10)
      await stream.return()
      await vi.advanceTimersByTimeAsync(0)
    }
    expect(cancel).toHaveBeenCalledTimes(2)
    const ended = new ReadableStream<Uint8Array>({ start: (controller) => controller.close() })
    expect((await shape({ getReader: () => ended.getReader() } as never, bytesOf(10)).next()).done).toBe(true)
  })
})

test('a process does not end while bytes wait', async () => {
  vi.useRealTimers()
  const timer = vi.spyOn(globalThis, 'setTimeout')
  const controller = new AbortController()
  const stream = shape(chunks(1, 2), bytesOf(1, 1), { signal: controller.signal })
  await stream.next()
  const waiting = stream.next().catch((error: unknown) => error)
  await new Promise((resolve) => setImmediate(resolve))
  expect((timer.mock.results as { value: NodeJS.Timeout }[])[0]?.value.hasRef()).toBe(true)
  controller.abort(new Error('enough'))
  expect(await waiting).toMatchObject({ message: 'enough' })
  timer.mockRestore()
})

describe('what it does not take', () => {
  test.each<[string, () => unknown, string]>([
    ['no rule', () => shape(chunks(1, 1), undefined as never), 'shape.rule'],
    ['a log', () => shape(chunks(1, 1), slidingLog({ limit: 1, window: '1s' })), 'shape.rule'],
    ['a queue', () => byteGroup(leakyQueue({ limit: 1, window: '1s', capacity: 1 })), 'shape.rule'],
    ['a text', () => shape('text' as never, bytesOf(1)), 'shape.source'],
    ['nothing', () => shape(undefined as never, bytesOf(1)), 'shape.source'],
    ['bytes themselves', () => shape(new Uint8Array(3) as never, bytesOf(1)), 'shape.source'],
    ['a peak of 0', () => byteGroup(bytesOf(1), { peakBytesPerSecond: 0 }), 'shape.peakBytesPerSecond'],
    ['a broken peak', () => shape(chunks(1, 1), bytesOf(1), { peakBytesPerSecond: 1.5 }), 'shape.peakBytesPerSecond'],
    [
      'a peak beside a group',
      () => shape(chunks(1, 1), byteGroup(bytesOf(1)), { peakBytesPerSecond: 1 }),
      'shape.peakBytesPerSecond',
    ],
  ])('%s', (_, run, path) => {
    expect(run).toThrow(expect.objectContaining({ code: 'CATRACA_OPTION_INVALID', path }))
  })

  test('unknown options', () => {
    expect(() => shape(chunks(1, 1), bytesOf(1), { peak: 1 } as ShapeOptions)).toThrow(/shape.peak is unknown/)
  })

  test('chunks that are no bytes', async () => {
    const reader = new Reader(shape(Readable.from(['text']) as never, bytesOf(10)))
    expect(await reader.done).toMatchObject({ code: 'CATRACA_OPTION_INVALID', path: 'shape.source' })
  })
})

test('goes into a pipeline of Node, under real time', async () => {
  vi.useRealTimers()
  let bytes = 0
  const destination = new Writable({
    highWaterMark: 1_000,
    write(chunk: Buffer, _, done) {
      bytes += chunk.length
      setImmediate(done)
    },
  })
  const began = Date.now()
  await pipeline(
    Readable.from(chunks(30, 1_000)),
    (source: AsyncIterable<Uint8Array>) => shape(source, bytesOf(100_000, 10_000)),
    destination,
  )
  expect(bytes).toBe(30_000)
  // 20,000 bytes after the burst take 200 ms at least; the upper margin is for busy machines.
  expect(Date.now() - began).toBeGreaterThanOrEqual(195)
  expect(Date.now() - began).toBeLessThan(5_000)
})

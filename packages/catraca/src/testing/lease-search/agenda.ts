import type { Chance } from './chance.ts'

interface Entry {
  readonly atUs: number
  readonly tie: number
  readonly run: () => void
}

/** What happens when, in true time. Things of one instant happen in an order drawn by chance. */
export class Agenda {
  /** True time, µs. */
  nowUs: number
  private readonly chance: Chance
  /** A heap, the earliest first. */
  private readonly heap: Entry[] = []

  constructor(startUs: number, chance: Chance) {
    this.nowUs = startUs
    this.chance = chance
  }

  /** Runs `run` at an instant; what lies in the past happens now. */
  at(atUs: number, run: () => void): void {
    const entry = { atUs: Math.max(atUs, this.nowUs), tie: this.chance.share(), run }
    const { heap } = this
    let place = heap.length
    heap.push(entry)
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!before(entry, heap[parent] as Entry)) break
      heap[place] = heap[parent] as Entry
      place = parent
    }
    heap[place] = entry
  }

  /** Does everything up to an instant, what comes up on the way included. */
  runUntil(endUs: number): void {
    for (let first = this.heap[0]; first !== undefined && first.atUs <= endUs; first = this.heap[0]) {
      this.removeFirst()
      this.nowUs = first.atUs
      first.run()
    }
    this.nowUs = endUs
  }

  private removeFirst(): void {
    const { heap } = this
    const last = heap.pop() as Entry
    if (heap.length === 0) return
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1] as Entry, heap[child] as Entry)) child++
      if (!before(heap[child] as Entry, last)) break
      heap[place] = heap[child] as Entry
      place = child
    }
    heap[place] = last
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.tie < b.tie)
}

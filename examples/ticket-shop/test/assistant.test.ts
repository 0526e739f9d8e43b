import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ask, expectProblem, start } from './helpers.ts'

async function startAssistant(): Promise<{
  url: string
  question: (text: string, init?: RequestInit) => Promise<Response>
  work: () => Promise<unknown>
}> {
  const { url, stop } = await start('assistant')
  onTestFinished(async () => void (await stop()))
  return {
    url,
    question: (text, init) =>
      fetch(`${url}/assistant/ask`, { method: 'POST', body: JSON.stringify({ question: text }), ...init }),
    work: async () => (await ask(`${url}/assistant/work`)).body,
  }
}

/** The chunks of an answer as they come. */
async function chunks(response: Response): Promise<string[]> {
  const seen: string[] = []
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) seen.push(decoder.decode(chunk))
  return seen
}

describe('the assistant', () => {
  test('streams its answer as events', async () => {
    const { question, work } = await startAssistant()
    const response = await question('When do doors open?')
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const seen = await chunks(response)
    expect(seen.length).toBeGreaterThan(2)
    expect(seen.join('')).toMatch(/^(data: \{"text":"[^"]+"\}\n\n){4,6}event: done\ndata: \{\}\n\n$/)
    expect(await work()).toEqual({ running: 0, finished: 1, stopped: 0 })
  })

  test('takes its time, and says the same to the same question', async () => {
    const { question } = await startAssistant()
    const start = performance.now()
    const plain = { headers: { Accept: 'text/plain' } }
    const answers = await Promise.all([question('Why?', plain), question('Why?', plain), question('How?', plain)])
    expect(answers[0]?.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    const [first, second, third] = await Promise.all(answers.map((answer) => answer.text()))
    // Timers may fire a little early, never much.
    expect(performance.now() - start).toBeGreaterThan(250)
    expect(first).toMatch(/^([A-Z][^\n]+\.\n){4,6}$/)
    expect(second).toBe(first)
    expect(third).not.toBe(first)
  })

  test('stops working when the caller leaves', async () => {
    const { question, work } = await startAssistant()
    const leave = new AbortController()
    const response = await question('Where?', { signal: leave.signal })
    expect(response.status).toBe(200)
    expect(await work()).toEqual({ running: 1, finished: 0, stopped: 0 })
    leave.abort()
    await vi.waitFor(async () => expect(await work()).toEqual({ running: 0, finished: 0, stopped: 1 }), 10_000)
  })

  test.each([{ question: '' }, { question: '  ' }, { question: 7 }, { question: 'x'.repeat(1_001) }])(
    'refuses a question that is none',
    async (body) => {
      const { url } = await startAssistant()
      expectProblem(await ask(`${url}/assistant/ask`, 'POST', body), 422)
    },
  )
})

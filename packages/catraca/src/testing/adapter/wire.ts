import type { SuiteSocket } from './app.ts'

/** An answer as it came over the connection. */
export interface Received {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What goes with a request. */
export interface Sent {
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** One connection: sends bytes as they are and reads answers one by one. */
export class Wire {
  private readonly socket: SuiteSocket
  private text = ''
  private ended: Error | undefined
  private wake: () => void = () => {}

  constructor(socket: SuiteSocket) {
    this.socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (part) => {
      this.text += part
      this.wake()
    })
    socket.on('error', (error) => this.end(error))
    socket.on('close', () => this.end(new Error('the connection was closed')))
  }

  send(method: string, target: string, { body = '', headers = {} }: Sent = {}): void {
    const length = body === '' ? {} : { 'Content-Length': String(body.length) }
    const lines = Object.entries({ Host: 'localhost', ...length, ...headers })
    const fields = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    this.socket.write(`${method} ${target} HTTP/1.1\r\n${fields}\r\n${body}`)
  }

  /** The next answer; throws when the connection ends before. */
  async receive(method = 'GET'): Promise<Received> {
    const { status, headers } = await this.head()
    let body = ''
    const length = headers['content-length']
    if (method === 'HEAD' || status === 204 || status === 304) return { status, headers, body }
    if (length !== undefined) body = await this.take((text) => (text.length >= Number(length) ? Number(length) : -1))
    else if (headers['transfer-encoding'] === 'chunked') {
      for (let chunk = await this.chunk(); chunk !== ''; chunk = await this.chunk()) body += chunk
    }
    return { status, headers, body }
  }

  /** The head of the next answer. */
  async head(): Promise<Omit<Received, 'body'>> {
    const head = await this.take((text) => (text.includes('\r\n\r\n') ? text.indexOf('\r\n\r\n') + 4 : -1))
    const [first = '', ...lines] = head.trim().split('\r\n')
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const [name = '', ...value] = line.split(':')
      const known = headers[name.toLowerCase()]
      headers[name.toLowerCase()] = `${known === undefined ? '' : `${known}, `}${value.join(':').trim()}`
    }
    return { status: Number(first.split(' ')[1]), headers }
  }

  /** The next part of a body without a length; empty at its end. */
  async chunk(): Promise<string> {
    const size = await this.take((text) => (text.includes('\r\n') ? text.indexOf('\r\n') + 2 : -1))
    const length = Number.parseInt(size, 16)
    const chunk = await this.take((text) => (text.length >= length + 2 ? length + 2 : -1))
    return chunk.slice(0, -2)
  }

  /** Resolves when the other end has closed the connection, with the error if it was not an orderly end. */
  async over(): Promise<Error | undefined> {
    while (this.ended === undefined) await this.more()
    return this.ended.message === 'the connection was closed' ? undefined : this.ended
  }

  close(): void {
    this.socket.destroy()
  }

  private async take(end: (text: string) => number): Promise<string> {
    let at = end(this.text)
    while (at < 0) {
      if (this.ended !== undefined) throw this.ended
      await this.more()
      at = end(this.text)
    }
    const part = this.text.slice(0, at)
    this.text = this.text.slice(at)
    return part
  }

  private more(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }

  private end(error: Error): void {
    this.ended ??= error
    this.wake()
  }
}

import { styleText } from 'node:util'
import type { Health } from 'catraca'
import type { GatewayStats } from '../gateway.ts'

const terminalEveryMs = 200
const logEveryMs = 5_000
const eraseLine = '\r\u001B[2K'

/**
 * The line `admitted 123  refused 4`. On a terminal it is one line that changes; in a pipe or file a new line, at most
 * every five seconds and only when something changed. While the shared store is gone it ends with `store: degraded`.
 */
export class LiveLine {
  private readonly gateway: { readonly stats: GatewayStats; readonly health: Health }
  private readonly terminal = process.stdout.isTTY && process.env['TERM'] !== 'dumb'
  private readonly colours = this.terminal && !process.env['NO_COLOR']
  private shown = ''
  private timer: NodeJS.Timeout | undefined

  constructor(gateway: { readonly stats: GatewayStats; readonly health: Health }) {
    this.gateway = gateway
  }

  /** Shows the line from now on. */
  start(): void {
    this.timer = setInterval(() => this.show(), this.terminal ? terminalEveryMs : logEveryMs)
    // A reader that went away must not end the gateway.
    process.stdout.on('error', () => this.stop())
  }

  /** Prints a line of its own on the error output. */
  note(line: string): void {
    if (this.terminal && this.shown !== '') process.stdout.write(eraseLine)
    this.shown = ''
    process.stderr.write(`${this.colours && process.stderr.isTTY ? styleText('yellow', line) : line}\n`)
  }

  /** Shows the line for the last time. */
  stop(): void {
    if (this.timer === undefined) return
    clearInterval(this.timer)
    this.timer = undefined
    if (this.terminal && this.shown !== '') process.stdout.write('\n')
  }

  private show(): void {
    const { admitted, refused, failed } = this.gateway.stats
    const store = this.gateway.health === 'healthy' ? '' : '  store: degraded'
    const counts = `admitted ${admitted}  ${this.colours && refused > 0 ? styleText('red', `refused ${refused}`) : `refused ${refused}`}`
    const line = `${counts}${failed > 0 ? `  failed ${failed}` : ''}${store}`
    if (line === this.shown) return
    process.stdout.write(this.terminal ? `${eraseLine}${line}` : `${line}\n`)
    this.shown = line
  }
}

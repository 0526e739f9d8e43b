import { channelOf, workerStore } from 'catraca/workers'
import { accessLog } from '../cli/access-log.ts'
import { Gateway } from '../gateway.ts'
import { type FromWorker, failureOf, isGatewayMessage, type Order, type ToWorker } from './messages.ts'

/**
 * One of several processes of a gateway: the program that the command starts for each. It does what it is told over its
 * channel and ends when that breaks, however the command ended.
 */

/** How often counts are told, where they changed. */
const tellEveryMs = 200

let gateway: Gateway | undefined
let finish: (() => Promise<void>) | undefined
let stopping = false

// A terminal sends these to the whole group; the command, which has them too, says what to do.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})
process.on('SIGTERM', () => void stop())
process.on('message', (message) => {
  if (isGatewayMessage(message)) void take(message as ToWorker)
})
void tell({ gateway: 'hello' })

async function take(message: ToWorker): Promise<void> {
  switch (message.gateway) {
    case 'start':
      await start(message.order)
      break
    case 'probe':
      for (const line of (await gateway?.probeUpstreams()) ?? []) void tell({ gateway: 'warning', line })
      break
    case 'reload':
      await reload(message)
      break
    default:
      await stop()
  }
}

async function start({ document, per, workers, port, host, log, secret }: Order): Promise<void> {
  const access = log === undefined ? undefined : accessLog(log, (lines) => tell({ gateway: 'lines', lines }))
  const onMemory = typeof document.store !== 'object'
  try {
    const store = onMemory ? workerStore({ channel: channelOf(process), workers }) : undefined
    gateway = new Gateway(
      document,
      {
        document,
        per,
        ...(access !== undefined && { onAccess: (entry) => access.write(entry) }),
        onWarning: (line) => void tell({ gateway: 'warning', line }),
      },
      { workers, store, secret },
    )
    const listening = await gateway.listen({ port, ...(host !== undefined && { host }) })
    void tell({ gateway: 'listening', port: listening })
  } catch (error) {
    await tell({ gateway: 'failed', error: failureOf(error) })
    process.exit(1)
  }
  const timer = setInterval(() => void tellCounts(false), tellEveryMs)
  finish = async () => {
    clearInterval(timer)
    await gateway?.close()
    await access?.end()
    await tellCounts(true)
  }
}

async function reload({ document }: Extract<ToWorker, { gateway: 'reload' }>): Promise<void> {
  try {
    gateway?.reload(document)
    await tell({ gateway: 'reloaded' })
  } catch (error) {
    await tell({ gateway: 'reloaded', wrong: (error as Error).message })
  }
}

/** Lets running requests end, tells the last counts, and ends the process. */
async function stop(): Promise<void> {
  if (stopping) return
  stopping = true
  await finish?.()
  process.exit(0)
}

let told = ''
function tellCounts(always: boolean): Promise<void> {
  if (gateway === undefined) return Promise.resolve()
  const { stats, health, store } = gateway
  const counts = { stats, health, store }
  const text = JSON.stringify(counts)
  if (text === told && !always) return Promise.resolve()
  told = text
  return tell({ gateway: 'counted', counts })
}

/** Resolves when the message is on its way, or can no longer be sent. */
function tell(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve())
    else resolve()
  })
}

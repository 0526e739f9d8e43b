// A worker of node:cluster that limits in its own memory says so; the primary does not.
import cluster from 'node:cluster'
import { createGuard } from 'catraca/http'
import { rateLimit } from 'catraca/node'

const rule = { algorithm: 'token-bucket', limit: 1, window: '1m' }
const told = []
const diagnosis = ({ code }) => told.push(code)
createGuard({ policies: { version: 1, policies: { net: { per: 'address', rule } } }, on: { diagnosis } }).close()
rateLimit({ limit: 1, window: '1m', on: { diagnosis } })
const who = cluster.isPrimary ? 'primary' : 'worker'
process.stdout.write(`${who} ${told.join(' ') || 'nothing'}\n`)
if (cluster.isPrimary) cluster.fork()
else cluster.worker.disconnect()

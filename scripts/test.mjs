import { build } from './build.mjs'
import { run, setup, setupCommand, setupRedis, tool } from './setup.mjs'

setup()
setupCommand('curl', 'curl')
build()
await setupRedis()
run(tool('vitest'), ['run', ...process.argv.slice(2)])

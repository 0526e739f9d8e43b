import { build } from './build.mjs'
import { run, setup, setupCommand, tool } from './setup.mjs'

setup()
setupCommand('curl', 'curl')
build()
run(tool('vitest'), ['run', ...process.argv.slice(2)])

#!/usr/bin/env node
import { existsSync } from 'node:fs'

const built = new URL('../dist/cli/main.js', import.meta.url)

if (existsSync(built)) await import(built.href)
else {
  process.stderr.write('catraca is not built yet; run: npm run build\n')
  process.exitCode = 1
}

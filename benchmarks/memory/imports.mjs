import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire, register } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Imports one package and says how long that took and how many bytes of code it loaded: `imports.mjs NAME [--time]`. */
const [, , name, mode] = process.argv

if (mode === '--time') {
  const start = process.hrtime.bigint()
  await import(name)
  console.log(JSON.stringify({ ms: Number(process.hrtime.bigint() - start) / 1e6 }))
} else {
  const log = join(mkdtempSync(join(tmpdir(), 'catraca-imports-')), 'urls')
  writeFileSync(log, '')
  register(`data:text/javascript,${encodeURIComponent(hook(log))}`)
  await import(name)
  const modules = new Set(
    readFileSync(log, 'utf8')
      .split('\n')
      .filter((url) => url.startsWith('file:'))
      .map((url) => fileURLToPath(url)),
  )
  for (const file of Object.keys(createRequire(import.meta.url).cache)) modules.add(file)
  const bytes = [...modules].reduce((sum, file) => sum + statSync(file).size, 0)
  console.log(JSON.stringify({ bytes, files: modules.size }))
}
process.exit(0)

/** A loader hook that notes every module's address. */
function hook(file) {
  return `import { appendFileSync } from 'node:fs'
export async function load(url, context, next) {
  appendFileSync(${JSON.stringify(file)}, url + '\\n')
  return next(url, context)
}`
}

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createContext, runInContext } from 'node:vm'
import type * as Fetch from 'catraca/fetch'
import type * as Http from 'catraca/http'
import { build } from 'vite'

/** What the built library shows to code that runs where only the web's globals are. */
export interface Inside {
  rateLimit: typeof Fetch.rateLimit
  createGuard: typeof Http.createGuard
  /** The type of a global there. */
  typeOf(name: string): string
}

/** Globals of the web; the language brings its own. */
const globals = [
  'AbortController',
  'AbortSignal',
  'Blob',
  'Event',
  'EventTarget',
  'FormData',
  'Headers',
  'ReadableStream',
  'Request',
  'Response',
  'TextDecoder',
  'TextEncoder',
  'TransformStream',
  'URL',
  'URLSearchParams',
  'WritableStream',
  'atob',
  'btoa',
  'clearInterval',
  'clearTimeout',
  'console',
  'crypto',
  'fetch',
  'performance',
  'queueMicrotask',
  'setInterval',
  'setTimeout',
  'structuredClone',
]

/** Runs the built entries in a context of their own, which has no more than the web: no Node, no `require`. */
export async function insideWeb(): Promise<Inside> {
  const dist = fileURLToPath(new URL('../../../dist/', import.meta.url))
  if (!existsSync(`${dist}fetch.js`)) throw new Error('dist/fetch.js is missing: build first, with npm run build')
  const folder = fileURLToPath(new URL('../../../../../.cache/web-context/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const entry = `${folder}entry.js`
  const names = `export { rateLimit } from '${dist}fetch.js'\nexport { createGuard } from '${dist}http.js'\n`
  writeFileSync(entry, names)
  const built = await build({
    configFile: false,
    logLevel: 'silent',
    build: { write: false, minify: false, lib: { entry, formats: ['iife'], name: 'catraca', fileName: 'catraca' } },
  })
  const [{ output }] = built as unknown as [{ output: [{ code: string }] }]
  const context = createContext({})
  for (const name of globals) {
    // As the server sets them: it puts classes of its own in place of some.
    Object.defineProperty(context, name, { get: () => (globalThis as unknown as Record<string, unknown>)[name] })
  }
  const shown = runInContext(`${output[0].code}\ncatraca`, context) as Omit<Inside, 'typeOf'>
  return { ...shown, typeOf: (name) => runInContext(`typeof ${name}`, context) as string }
}

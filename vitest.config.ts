import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { mutantPlugin } from './scripts/mutant-plugin.mjs'

const root = fileURLToPath(new URL('.', import.meta.url))
// Not `import`: workers take these for `require` too, which then finds modules where it expects CommonJS.
const conditions = ['catraca-src', 'node']

export default defineConfig({
  plugins: [mutantPlugin(root)],
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['packages/*/{src,test}/**/*.test.ts', 'examples/*/test/**/*.test.ts', 'scripts/**/*.test.ts'],
    reporters: ['default', './scripts/reporter.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    retry: 0,
    maxWorkers: 2,
  },
})

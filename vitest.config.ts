import { defineConfig } from 'vitest/config'

const conditions = ['catraca-src', 'node', 'import', 'module', 'default']

export default defineConfig({
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

import { defineConfig } from 'vite'

/** One file per public entry; what entries share becomes one common chunk. Names stay, so that traces can be read. */
export default defineConfig({
  build: {
    target: 'es2022',
    minify: false,
    emptyOutDir: false,
    lib: {
      entry: Object.fromEntries(
        [
          'index',
          'policy',
          'http',
          'node',
          'express',
          'fastify',
          'hono',
          'koa',
          'nest',
          'fetch',
          'redis',
          'workers',
          'testing',
        ].map((name) => [name, `src/${name}.ts`]),
      ),
      formats: ['es'],
    },
    rolldownOptions: {
      external: ['@nestjs/common'],
      output: { comments: false, minify: { compress: true, mangle: false, codegen: true } },
    },
  },
})

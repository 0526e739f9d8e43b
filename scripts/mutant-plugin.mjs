import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutants } from './mutants.data.mjs'

/**
 * Plants one defect of the list while tests run, named by the variable `CATRACA_MUTANT`. The files stay as they are:
 * the changed line exists only in what the test runner loads.
 *
 * @param {string} root
 * @returns {import('vite').Plugin}
 */
export function mutantPlugin(root) {
  const mutant = mutants.find(({ name }) => name === process.env['CATRACA_MUTANT'])
  return {
    name: 'catraca-mutant',
    enforce: 'pre',
    load(id) {
      if (mutant === undefined || id.split('?')[0] !== join(root, mutant.file)) return undefined
      return plant(readFileSync(id.split('?')[0] ?? '', 'utf8'), mutant)
    },
  }
}

/** The source with the defect in it. Throws when the line is not there exactly once, so that no mutant is idle. */
export function plant(source, { name, file, find, replace }) {
  if (source.split(find).length !== 2) throw new Error(`mutant "${name}" does not fit ${file}: the line has changed`)
  return source.replace(find, () => replace)
}

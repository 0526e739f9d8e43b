import { mkdirSync, writeFileSync } from 'node:fs'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

/** Titles of the tests that ran, with their results, for `npm run acceptance`. */
export const resultsFile = '.cache/tests.json'

/** Writes every test's full title and result to {@link resultsFile} and closes with `N passed, N failed, N skipped`. */
export default class CountingReporter implements Reporter {
  private readonly results: { title: string; state: string }[] = []

  onTestCaseResult(test: TestCase): void {
    this.results.push({ title: test.fullName, state: test.result().state })
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const broken = modules.filter((module) => module.errors().length > 0).length
    const count = (state: string): number => this.results.filter((result) => result.state === state).length
    mkdirSync('.cache', { recursive: true })
    writeFileSync(resultsFile, JSON.stringify(this.results))
    console.log(`${count('passed')} passed, ${count('failed') + broken} failed, ${count('skipped')} skipped`)
  }
}

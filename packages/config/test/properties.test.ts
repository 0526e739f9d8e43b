import { placeText, policyProblems } from 'catraca/policy'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { designDocument } from '../../catraca/test/guard/documents.ts'
import { readGatewayText, readPolicyText } from '../src/index.ts'
import { goodFile } from './bad-files.ts'

const good = goodFile(
  '    plans: { pro: { limit: 600 } }\n    mode: ${MODE:observe}\nplans: &p { names: [pro], default: pro }\n' +
    'auth:\n  apiKeys:\n    keys:\n      - { sha256: abc, client: "c", plan: por }\nroutes: [{ path: "/**", upstream: app }]\n',
)
const environment = { MODE: 'enforce', A: '1', B: '[x: {', C: '&a *b' }

/** Reads a text, and checks that what is said of it has a place in it. */
function read(text: string): void {
  for (const one of [readGatewayText(text, 'f', environment), readPolicyText(text, 'f', environment)]) {
    const lines = text.split('\n')
    if (one.document !== undefined) expect(one.problems).toEqual([])
    else expect(one.problems.length).toBeGreaterThan(0)
    for (const { line, column, message, code } of one.problems) {
      expect(line).toBeGreaterThanOrEqual(1)
      expect(line).toBeLessThanOrEqual(lines.length)
      expect(column).toBeGreaterThanOrEqual(1)
      // Directly behind the last character is a place, too.
      expect(column).toBeLessThanOrEqual((lines[line - 1] as string).length + 1)
      expect(message).not.toBe('')
      expect(code).toMatch(/^CATRACA_/)
    }
  }
}

describe('no text makes reading throw, and places are within the text', () => {
  test('random texts', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 80 }), read), { numRuns: 1_000 })
  })

  const pieces = [
    'a',
    ':',
    ': ',
    '- ',
    '\n',
    '  ',
    '\t',
    '{',
    '}',
    '[',
    ']',
    ',',
    '&a ',
    '*a',
    '!!set ',
    '!x ',
    '"',
    "'",
    '|',
    '>',
    '? ',
    '#',
    '%',
    '---\n',
    '...\n',
    '${A}',
    '${B}',
    '${C}',
    '${D}',
    '$${',
    '<<',
    '\r\n',
    '\u0000',
    '\uFEFF',
    '1',
    '.nan',
    'null',
    '~',
    'version: 1',
    'policies:',
    '__proto__',
    '\u{1F600}',
    '\uD800',
  ]

  test('random texts of pieces of YAML', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 30 }), (some) => read(some.join(''))),
      { numRuns: 3_000 },
    )
  })

  test('a good file with random changes', () => {
    const change = fc.record({
      at: fc.nat(good.length),
      removed: fc.oneof(fc.nat(3), fc.nat(60)),
      added: fc.oneof(fc.constantFrom('', ...pieces), fc.string({ maxLength: 3 })),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 5 }), (changes) => {
        read(
          changes.reduce((text, { at, removed, added }) => text.slice(0, at) + added + text.slice(at + removed), good),
        )
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a document is accepted from a file exactly when it is accepted from code', () => {
  // What YAML and JSON can carry; `${` would read the environment.
  const text = fc.string({ maxLength: 12 }).filter((one) => !one.includes('${'))
  const words = [
    'client',
    'address',
    'service',
    'off',
    'on',
    'no',
    'null',
    '~',
    '1',
    '1m',
    '0s',
    '0.5ms',
    '1e3',
    '0x10',
    '.inf',
    'pro',
    '',
    ' ',
    '<<',
    '*a',
    'yes',
    '2027-01-31',
    'quota',
    '- a',
    'a: b',
    'a #b',
    '"',
    '\u2028',
    '\uFEFF',
    '\n',
    'a\n b\n',
    '\t',
    '__proto__',
  ]
  const scalar = fc.oneof(
    fc.constantFrom<unknown>(...words, null, true, false, 0, 1, -1, 1.5, 60, 1e12, 1e15, 1e21, -0.000001),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((one) => !Object.is(one, -0)),
    text,
  )
  const value = fc.oneof(
    { weight: 4, arbitrary: scalar },
    { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
    { weight: 1, arbitrary: fc.dictionary(fc.oneof(text, fc.constantFrom(...words)), scalar, { maxKeys: 3 }) },
  )
  const names = [
    'mode',
    'charge',
    'overflow',
    'plans',
    'clients',
    'limit',
    'window',
    'burst',
    'never',
    'cost',
    'insteadOf',
    'checks',
    'capacity',
    'caseSensitive',
    'trust',
    'advice',
    'onStoreFailure',
    '__proto__',
    '',
  ]

  /** Takes pseudo-random steps into the document and changes, adds or removes something there. */
  function mutated(steps: readonly number[], kind: number, name: string, put: unknown): unknown {
    const copy: unknown = structuredClone(designDocument)
    let parent = copy as Record<string, unknown>
    for (const [index, step] of steps.entries()) {
      const keys = Object.keys(parent)
      const key = keys[step % Math.max(1, keys.length)] as string
      const inner = parent[key]
      if (index < steps.length - 1 && typeof inner === 'object' && inner !== null && Object.keys(inner).length > 0) {
        parent = inner as Record<string, unknown>
        continue
      }
      if (kind === 0) define(parent, key, put)
      else if (kind === 1 && Array.isArray(parent)) parent.splice(step % parent.length, 1)
      else if (kind === 1) delete parent[key]
      else if (kind === 2 && Array.isArray(parent)) parent.push(put)
      else if (kind === 2) define(parent, name, put)
      break
    }
    return copy
  }

  function define(target: object, key: string, put: unknown): void {
    Object.defineProperty(target, key, { value: put, enumerable: true, configurable: true, writable: true })
  }

  const mutation = fc.tuple(
    fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }),
    fc.constantFrom(0, 0, 0, 1, 2, 2, 3),
    fc.oneof(fc.constantFrom(...names), text),
    value,
  )

  for (const [form, write] of [
    ['YAML', (document: unknown) => stringify(document)],
    ['JSON', (document: unknown) => JSON.stringify(document)],
    ['JSON with tabs', (document: unknown) => JSON.stringify(document, undefined, '\t')],
  ] as const) {
    test(`from ${form}`, () => {
      let accepted = 0
      let refused = 0
      fc.assert(
        fc.property(mutation, (given) => {
          const document = mutated(...given)
          const problems = policyProblems(document)
          const file = readPolicyText(write(document), 'f')
          if (problems.length === 0) accepted++
          else refused++
          expect(file.problems.map(({ code, path, value: found }) => [code, path, found])).toEqual(
            problems.map(({ code, place, value: found }) => [code, placeText(place), found]),
          )
          if (problems.length === 0) expect(file.document).toEqual(document)
        }),
        { numRuns: 500 },
      )
      expect(Math.min(accepted, refused)).toBeGreaterThan(50)
    })
  }
})

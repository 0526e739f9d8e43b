import type { Place } from 'catraca/policy'
import { type Document, isAlias, isMap, isPair, isScalar, isSeq, LineCounter, type Node, parse, parseDocument, visit } from 'yaml'
import { type Environment, fillIn } from './environment.ts'

/** A place in a file; lines and columns begin at 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** Something that keeps a text from being read at all. */
export interface SyntaxProblem extends Position {
  readonly code: 'CATRACA_FILE_SYNTAX' | 'CATRACA_FILE_VARIABLE'
  readonly message: string
}

/** A YAML or JSON text as a value that remembers where everything stood. */
export class Source {
  /** What the text says; undefined when it cannot be read. */
  readonly value: unknown
  readonly problems: readonly SyntaxProblem[]
  private readonly document: Document.Parsed
  private readonly lines = new LineCounter()

  /** JSON is read as the YAML it is. Variables are filled in from `environment`. */
  constructor(text: string, environment: Environment) {
    this.document = parseDocument(text, { lineCounter: this.lines, prettyErrors: false, uniqueKeys: true })
    const problems = this.document.errors.map(
      ({ message, pos }): SyntaxProblem => ({ code: 'CATRACA_FILE_SYNTAX', message: lower(message), ...this.at(pos[0]) }),
    )
    if (problems.length === 0) problems.push(...this.fillIn(environment))
    this.problems = problems
    this.value = problems.length === 0 ? this.toValue(problems) : undefined
  }

  /** Where a place of the value stands: an entry at its key, an item at its start; the nearest around it for one that is missing. */
  positionOf(place: Place): Position {
    let node: unknown = this.document.contents
    let offset = startOf(node) ?? 0
    for (const part of place) {
      if (isAlias(node)) node = node.resolve(this.document)
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(part))
        if (pair === undefined) break
        offset = startOf(pair.key) ?? offset
        node = pair.value
      } else if (isSeq(node) && typeof part === 'number') {
        node = node.items[part]
        if (isPair(node)) break
        offset = startOf(node) ?? offset
      } else break
    }
    return this.at(offset)
  }

  /** Plain scalars take the type of what was filled in, quoted ones stay texts. */
  private fillIn(environment: Environment): SyntaxProblem[] {
    const problems: SyntaxProblem[] = []
    visit(this.document, {
      Scalar: (key, node) => {
        if (key === 'key' || typeof node.value !== 'string') return
        const { text, changed, unset } = fillIn(node.value, environment)
        if (!changed) return
        node.value = node.type === 'PLAIN' ? typed(text) : text
        for (const name of unset) {
          const message = `the environment variable ${name} is not set; write \${${name}:default} for a default`
          problems.push({ code: 'CATRACA_FILE_VARIABLE', message, ...this.at(node.range?.[0] ?? 0) })
        }
      },
    })
    return problems
  }

  private toValue(problems: SyntaxProblem[]): unknown {
    try {
      return this.document.toJS()
    } catch (error) {
      // Aliases that name nothing, or that would unfold without end.
      problems.push({ code: 'CATRACA_FILE_SYNTAX', message: lower((error as Error).message), line: 1, column: 1 })
      return undefined
    }
  }

  private at(offset: number): Position {
    const { line, col } = this.lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0]
}

function typed(text: string): unknown {
  const value: unknown = text === '' ? '' : parse(text)
  return typeof value === 'object' ? text : value
}

function lower(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1)
}

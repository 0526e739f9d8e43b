import type { Place } from 'catraca/policy'
import { type Document, isAlias, isMap, isPair, isScalar, isSeq, type Node, parseDocument, visit } from 'yaml'
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
  private readonly length: number
  private readonly starts: readonly number[]

  /** JSON is read as the YAML it is. Variables are filled in from `environment`. */
  constructor(text: string, environment: Environment) {
    this.length = text.length
    this.starts = lineStarts(text)
    this.document = parseDocument(text, {
      prettyErrors: false,
      uniqueKeys: true,
      // Nothing is written to the console, and a tag such as !!set makes no value that a document cannot have in code.
      logLevel: 'error',
      resolveKnownTags: false,
    })
    const { errors, warnings } = this.document
    const problems = [...errors, ...warnings].map((error) => this.syntaxProblem(messageOf(error, text), error.pos[0]))
    if (problems.length === 0) problems.push(...this.aliasProblems())
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
        const pair = node.items.find(({ key }) => keyText(key, this.document) === String(part))
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

  private aliasProblems(): SyntaxProblem[] {
    const problems: SyntaxProblem[] = []
    visit(this.document, {
      Alias: (_, node) => {
        if (node.resolve(this.document) !== undefined) return
        problems.push(
          this.syntaxProblem(`*${node.source} is no anchor; write &${node.source} before it`, startOf(node)),
        )
      },
    })
    return problems
  }

  /** Plain scalars take the type of what was filled in, quoted ones stay texts. */
  private fillIn(environment: Environment): SyntaxProblem[] {
    const problems: SyntaxProblem[] = []
    visit(this.document, {
      Scalar: (key, node) => {
        if (key === 'key' || typeof node.value !== 'string') return
        const { text, changed, unset } = fillIn(node.value, environment)
        if (!changed) return
        node.value = node.type === 'PLAIN' && node.tag === undefined ? typed(text) : text
        for (const name of unset) {
          const message = `the environment variable ${name} is not set; write \${${name}:default} for a default`
          problems.push({ code: 'CATRACA_FILE_VARIABLE', message, ...this.at(startOf(node) ?? 0) })
        }
      },
    })
    return problems
  }

  private toValue(problems: SyntaxProblem[]): unknown {
    try {
      return this.document.toJS()
    } catch (error) {
      // Aliases that would unfold without end.
      problems.push(this.syntaxProblem((error as Error).message, 0))
      return undefined
    }
  }

  private syntaxProblem(message: string, offset = 0): SyntaxProblem {
    return { code: 'CATRACA_FILE_SYNTAX', message: lower(message), ...this.at(offset) }
  }

  private at(offset: number): Position {
    // The last line that begins at or before the offset.
    let [low, high] = [0, this.starts.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.starts[middle] as number) <= offset) low = middle
      else high = middle
    }
    return { line: low + 1, column: Math.max(1, Math.min(offset, this.length) - (this.starts[low] as number) + 1) }
  }
}

/** Where lines begin. Found here, because the parser's counter misses lines of texts that it gives up on. */
function lineStarts(text: string): number[] {
  const starts = [text.startsWith('\uFEFF') ? 1 : 0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0]
}

/** The name a key has in the value; undefined for a list or an object as key. */
function keyText(key: unknown, document: Document.Parsed): string | undefined {
  const node = isAlias(key) ? key.resolve(document) : key
  if (!isScalar<string | number | boolean | null>(node)) return undefined
  return node.value === null ? '' : String(node.value)
}

/** What a plain scalar of this text is: a number, true, false, null, or the text itself. */
function typed(text: string): unknown {
  const { contents, errors } = parseDocument(text, { logLevel: 'error' })
  const plain = errors.length === 0 && isScalar(contents) && contents.type === 'PLAIN' && contents.source === text
  return plain ? contents.value : text
}

function messageOf(
  { code, message, pos }: { code: string; message: string; pos: readonly [number, number] },
  text: string,
): string {
  if (code !== 'DUPLICATE_KEY') return message
  const [key] = /^("[^"\n]*"|'[^'\n]*'|[^:\n]*)/.exec(text.slice(pos[0], pos[0] + 100)) as RegExpExecArray
  return `the key ${key.trim()} stands here a second time; each key once`
}

function lower(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1)
}

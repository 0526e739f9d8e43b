import { readFile } from 'node:fs/promises'
import { CatracaError, type ErrorCode } from 'catraca'
import { type Place, type PolicyDocument, type Problem, placeText, policyProblems } from 'catraca/policy'
import type { Environment } from './environment.ts'
import type { GatewayDocument } from './gateway-document.ts'
import { gatewayProblems } from './gateway-problems.ts'
import { type Position, Source } from './source.ts'

/** One thing that is wrong in a file. */
export interface FileProblem extends Position {
  readonly code: ErrorCode
  readonly file: string
  /** Where in the document, such as `policies.login.rule.limit`; empty when the text cannot be read. */
  readonly path: string
  readonly value: unknown
  /** What is wrong and what is allowed. */
  readonly message: string
  /** The known name that was probably meant. */
  readonly near?: string
}

/** A file that was read: its document, or what is wrong with it. */
export type Read<T> =
  | { readonly document: T; readonly problems: readonly []; locate(place: Place): Position }
  | { readonly document: undefined; readonly problems: readonly FileProblem[] }

/** Reads a policy document from YAML or JSON. `file` is its name in messages. */
export function readPolicyText(text: string, file: string, environment: Environment = {}): Read<PolicyDocument> {
  return readText<PolicyDocument>(text, file, environment, policyProblems)
}

/** Reads a gateway file from YAML or JSON. `file` is its name in messages. */
export function readGatewayText(text: string, file: string, environment: Environment = {}): Read<GatewayDocument> {
  return readText<GatewayDocument>(text, file, environment, gatewayProblems)
}

/** Reads a policy document from a file. Rejects with the system's error when there is none. */
export async function readPolicyFile(
  file: string,
  environment: Environment = process.env,
): Promise<Read<PolicyDocument>> {
  return readPolicyText(await readFile(file, 'utf8'), file, environment)
}

/** Reads a gateway file. Rejects with the system's error when there is none. */
export async function readGatewayFile(
  file: string,
  environment: Environment = process.env,
): Promise<Read<GatewayDocument>> {
  return readGatewayText(await readFile(file, 'utf8'), file, environment)
}

/** A problem as a line: `catraca.yaml:12:5: policies.login.rule.limit is 0; allowed: … [CODE]`. */
export function problemLine({ file, line, column, message, code }: FileProblem): string {
  return `${file}:${line}:${column}: ${message} [${code}]`
}

/** The problems of a file as one error. */
export function fileError(problems: readonly FileProblem[]): CatracaError {
  const [first] = problems as readonly [FileProblem]
  const { path, value } = first
  return new CatracaError(
    first.code,
    problems
      .map(problemLine)
      .join('\n')
      .replace(/ \[\w+\]$/, ''),
    { path, value },
  )
}

function readText<T>(
  text: string,
  file: string,
  environment: Environment,
  problemsIn: (value: unknown) => Problem[],
): Read<T> {
  const source = new Source(text, environment)
  if (source.problems.length > 0) {
    const problems = source.problems.map((one): FileProblem => ({ ...one, file, path: '', value: undefined }))
    return { document: undefined, problems }
  }
  const problems = problemsIn(source.value).map(({ code, place, value, words, near }): FileProblem => {
    const path = placeText(place)
    const message = `${path === '' ? 'the document' : path} ${words}`
    return { code, file, ...source.positionOf(place), path, value, message, ...(near !== undefined && { near }) }
  })
  if (problems.length > 0) return { document: undefined, problems }
  return { document: source.value as T, problems: [], locate: (place) => source.positionOf(place) }
}

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { parseSync } from 'vite'

/** What each room of the library may import besides itself: the arrows of docs/design.md, section 4. */
const beforeStores = ['core', 'algorithms', 'resilience', 'fields']
const rooms: Readonly<Record<string, readonly string[]>> = {
  core: [],
  algorithms: ['core'],
  resilience: ['core'],
  fields: ['core'],
  stores: beforeStores,
  limiter: [...beforeStores, 'stores'],
  policy: [...beforeStores, 'stores', 'limiter'],
  http: [...beforeStores, 'stores', 'limiter', 'policy'],
  adapters: [...beforeStores, 'stores', 'limiter', 'policy', 'http'],
  client: ['core', 'resilience', 'fields', 'limiter', 'policy'],
  testing: [...beforeStores, 'stores', 'limiter', 'policy', 'http', 'client'],
}
/** Files beside the rooms are public entries: they may show every room but testing, which is an entry of its own. */
const entry = 'the entries'
/** Rooms whose parts do not know each other, and the parts that are shared. */
const siblings: Readonly<Record<string, readonly string[]>> = {
  algorithms: ['bucket', 'ring'],
  adapters: ['exchange', 'mount', 'web'],
}
/** Frameworks whose adapter names their types. */
const frameworks = ['fastify', 'hono', 'koa']
/** Rooms of pure steps: no clock, no chance, nothing asynchronous. */
const pureRooms = ['algorithms', 'resilience']
const library = 'packages/catraca/src'

interface Import {
  specifier: string
  typeOnly: boolean
  line: number
}

interface Source {
  imports: Import[]
  /** Lines that hold async functions or wait. */
  asyncLines: number[]
  errors: string[]
}

/** Every import in the source folders under `root` that goes against an arrow, one sentence each. */
export function findViolations(root: string): string[] {
  const exportsOf = workspaceExports(root)
  const violations: string[] = []
  for (const folder of sourceFolders(root)) {
    for (const file of filesOf(join(root, folder))) {
      const path = toPath(relative(root, file))
      const source = readSource(file, readFileSync(file, 'utf8'))
      for (const error of source.errors) violations.push(`${path} cannot be read: ${error}`)
      for (const one of source.imports) {
        const target = one.specifier.startsWith('.')
          ? toPath(relative(root, resolve(dirname(file), one.specifier)))
          : undefined
        const why = folder === library ? inLibrary(path, one, target) : outside(folder, one, target, exportsOf)
        if (why !== undefined) violations.push(`${path}:${one.line} imports ${one.specifier}: ${why}`)
      }
      if (!pureRooms.includes(roomOf(path))) continue
      for (const line of source.asyncLines)
        violations.push(`${path}:${line} is asynchronous: ${roomOf(path)} holds synchronous steps`)
    }
  }
  return violations.toSorted()
}

/** Why a file of the library must not import something, or undefined when it may. */
function inLibrary(path: string, { specifier, typeOnly }: Import, target: string | undefined): string | undefined {
  if (target === undefined) {
    // What an adapter is for, its users have. Types of it, and of Nest the exception that its filters know.
    if (specifier === '@nestjs/common' && path === `${library}/adapters/nest.ts`) return undefined
    if (typeOnly && frameworks.includes(specifier) && path === `${library}/adapters/${specifier}.ts`) return undefined
    return specifier.startsWith('node:') ? 'the library runs without Node' : 'the library has no dependencies'
  }
  if (!target.startsWith(`${library}/`)) return 'the library imports nothing outside its own source'
  const [from, to] = [roomOf(path), roomOf(target)]
  if (from !== entry && !(from in rooms)) return `${from} is not a room of the design`
  if (to === 'testing' && from !== 'testing' && path !== `${library}/testing.ts`) return 'nothing imports testing'
  if (pureRooms.includes(from)) {
    if (target === `${library}/core/clock.ts`) return `${from} has no clock`
    if (target === `${library}/core/random.ts` && !typeOnly) return `${from} has no chance of its own`
  }
  if (from === entry) return undefined
  if (from === to) return betweenSiblings(from, path, target)
  if (rooms[from]?.includes(to)) return undefined
  return `${from} may import ${[from, ...(rooms[from] ?? [])].join(', ')}, not ${to}`
}

function betweenSiblings(room: string, path: string, target: string): string | undefined {
  const shared = siblings[room]
  const [from, to] = [partOf(path), partOf(target)]
  if (shared === undefined || from === to || shared.includes(to)) return undefined
  // A file such as algorithms/registry.ts lists the folders beside it.
  if (!isFolder(path) && isFolder(target)) return undefined
  return `${from} and ${to} are siblings; what they share goes down a layer`
}

/** Why a file outside the library must not import something: other packages are known by their public entries only. */
function outside(
  folder: string,
  { specifier }: Import,
  target: string | undefined,
  exportsOf: ReadonlyMap<string, readonly string[]>,
): string | undefined {
  if (target !== undefined) {
    return target.startsWith(`${dirname(folder)}/`) ? undefined : 'other packages are imported by name'
  }
  if (specifier.startsWith('/')) return 'other packages are imported by name'
  const parts = specifier.split('/')
  const name = parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
  const published = exportsOf.get(name)
  if (published === undefined) return undefined
  const subpath = `.${specifier.slice(name.length)}`
  return published.includes(subpath)
    ? undefined
    : `${subpath} is not a public entry of ${name} (${published.join(', ')})`
}

/** The room of a file of the library: its first folder, or {@link entry} for a file beside the rooms. */
function roomOf(path: string): string {
  const parts = path.slice(library.length + 1).split('/')
  return path.startsWith(`${library}/`) && parts.length > 1 ? (parts[0] ?? entry) : entry
}

/** The part of a room that a file belongs to: a folder, or the file itself. */
function partOf(path: string): string {
  return path.split('/')[4] ?? ''
}

function isFolder(path: string): boolean {
  return path.split('/').length > 5
}

function sourceFolders(root: string): string[] {
  return packageFolders(root)
    .map((folder) => `${folder}/src`)
    .filter((folder) => existsSync(join(root, folder)))
}

function packageFolders(root: string): string[] {
  return ['packages', 'apps'].flatMap((group) =>
    existsSync(join(root, group)) ? readdirSync(join(root, group)).map((name) => `${group}/${name}`) : [],
  )
}

/** Public entries by package name, as package.json lists them. */
function workspaceExports(root: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const folder of packageFolders(root)) {
    const file = join(root, folder, 'package.json')
    if (!existsSync(file)) continue
    const { name, exports = {} } = JSON.parse(readFileSync(file, 'utf8')) as { name: string; exports?: object }
    found.set(name, Object.keys(exports))
  }
  return found
}

/** TypeScript files of a folder; tests that stand beside the source are no part of it. */
function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.[cm]?tsx?$/.test(name) && !/\.test\.tsx?$/.test(name))
    .map((name) => join(folder, name))
}

function toPath(path: string): string {
  return path.split(sep).join('/')
}

/** True for `import type { T }` and for `import { type T }`, where every name is a type. */
function isTypeOnly(node: Node): boolean {
  const kindOf = (part: Node): unknown => part['importKind'] ?? part['exportKind']
  const names = (node['specifiers'] ?? []) as Node[]
  return kindOf(node) === 'type' || (names.length > 0 && names.every((name) => kindOf(name) === 'type'))
}

type Node = { type: string; start: number; [key: string]: unknown }

/** The imports of a source text: static, dynamic, re-exports, `import x = require()`, `import('x').T`, references. */
function readSource(file: string, text: string): Source {
  const { program, comments, errors } = parseSync(file, text, {
    lang: file.endsWith('x') ? 'tsx' : 'ts',
    sourceType: 'module',
  })
  const source: Source = { imports: [], asyncLines: [], errors: errors.map(({ message }) => message) }
  const lineAt = (offset: number): number => text.slice(0, offset).split('\n').length
  const note = (value: unknown, node: Node, typeOnly: boolean): void => {
    const specifier = typeof value === 'string' ? value : 'a computed name'
    source.imports.push({ specifier, typeOnly, line: lineAt(node.start) })
  }
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) return value.forEach(visit)
    const node = value as Node
    const literal = (part: unknown): unknown => (part as { value?: unknown } | null | undefined)?.value
    if (/^(?:Import|ExportAll|ExportNamed)Declaration$/.test(node.type) && node['source']) {
      note(literal(node['source']), node, isTypeOnly(node))
    } else if (node.type === 'ImportExpression') note(literal(node['source']), node, false)
    else if (node.type === 'TSImportType') note(literal(node['source'] ?? node['argument']), node, true)
    else if (node.type === 'TSExternalModuleReference') note(literal(node['expression']), node, false)
    else if (node.type === 'CallExpression' && (node['callee'] as { name?: string }).name === 'require') {
      note(literal((node['arguments'] as unknown[])[0]), node, false)
    }
    if (node['async'] === true || node.type === 'AwaitExpression' || node['await'] === true) {
      source.asyncLines.push(lineAt(node.start))
    }
    for (const child of Object.values(node)) visit(child)
  }
  visit(program)
  for (const comment of comments) {
    const reference = /^\/\s*<reference\s+(?:types|path)="([^"]+)"/.exec(comment.value)
    if (reference) note(reference[1], comment as unknown as Node, true)
  }
  return source
}

// Builds the scripts of the Redis store from the fragments beside the rules and the frames beside the store.
// `node scripts/redis-script.mjs` writes the file that a test compares with what this builds.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './setup.mjs'

const source = join(root, 'packages/catraca/src')
export const generatedFile = join(source, 'stores/redis/script.generated.ts')
const timed = "local clock = call('TIME')\nlocal us = clock[1] * 1000000 + clock[2]"

/** Fragments and frames by name, without comments and indents. */
function fragments() {
  const files = readdirSync(source, { recursive: true }).filter((file) => file.endsWith('.lua'))
  return new Map(
    files.map((file) => {
      const lines = readFileSync(join(source, file), 'utf8').split('\n')
      const code = lines.map((line) => line.trim()).filter((line) => line !== '' && !/^--(?!@)/.test(line))
      return [basename(file, '.lua'), code.join('\n')]
    }),
  )
}

/** The text of one, with what it includes; the step of all rules stands in for itself, so that the file has it once. */
function expand(name, known) {
  return known.get(name).replaceAll(/^--@include (\S+)$/gm, (_, other) => {
    if (!known.has(other)) throw new Error(`${name}.lua includes ${other}, which does not exist`)
    return other === 'member' && name !== 'member' ? '@member@' : expand(other, known)
  })
}

/** The file as it should be. */
export function generated() {
  const known = fragments()
  const member = expand('member', known)
  const scripts = ['decide', 'batch', 'amend', 'grant', 'pulse', 'reserve', 'up-to'].map((name) => {
    const frame = expand(name, known)
    const whole = frame.replaceAll('@member@', () => member)
    return { name, frame, sha: createHash('sha1').update(whole).digest('hex') }
  })
  if (!member.includes('redis.call') || scripts.some(({ frame }) => !frame.includes(timed)))
    throw new Error('a script does not read the time where it should')
  const quoted = (text) => `\`\n${text.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')}\``
  return [
    '// Made by scripts/redis-script.mjs from the .lua files; do not edit.',
    `const member = ${quoted(member)}.slice(1)`,
    "const whole = (frame: string): string => frame.slice(1).replaceAll('@member@', () => member)",
    ...scripts.flatMap(({ name, frame, sha }) => [
      `export const ${name === 'up-to' ? 'upTo' : name} = { sha: '${sha}', text: whole(${quoted(frame)}) }`,
    ]),
    '',
  ].join('\n')
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) writeFileSync(generatedFile, generated())

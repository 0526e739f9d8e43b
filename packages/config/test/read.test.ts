import { describe, expect, test } from 'vitest'
import { fileError, problemLine, readGatewayText, readPolicyText } from '../src/index.ts'
import { badFiles, goodFile } from './bad-files.ts'

describe('a file with one mistake', () => {
  for (const { name, text, at, path, code, says } of badFiles) {
    test(name, () => {
      const { problems, document } = readGatewayText(text, 'catraca.yaml')
      const [first] = problems
      expect(document).toBeUndefined()
      expect({ at: `${first?.line}:${first?.column}`, path: first?.path, code: first?.code }).toEqual({
        at,
        path,
        code,
      })
      expect(first?.message).toContain(says)
      if (path !== '') expect(first?.message.startsWith(`${path} `)).toBe(true)
    })
  }

  test('each has one problem, not several that follow from it', () => {
    const several = badFiles
      .filter(({ text }) => readGatewayText(text, 'f').problems.length !== 1)
      .map(({ name }) => name)
    // Each policy of a circle can be the one to change.
    expect(several).toEqual(['insteadOf in a circle'])
  })
})

describe('variables', () => {
  const environment = { PORT: '9000', NAME: 'api', EMPTY: '', ODD: 'a: [b', HASH: 'x # y', NO: 'null' }

  function listen(entry: string, variables: Record<string, string> = environment): unknown {
    const read = readGatewayText(goodFile(`listen:\n  ${entry}\n`), 'f', variables)
    return read.document === undefined ? read.problems.map(({ message }) => message) : read.document.listen
  }

  test('a plain one takes the type of what was filled in', () => {
    expect(listen('port: ${PORT}')).toEqual({ port: 9000 })
    expect(listen('port: ${PORT:8080}', {})).toEqual({ port: 8080 })
    expect(listen('port: 90${X:80}')).toEqual({ port: 9080 })
  })

  test('a quoted one and a block stay texts', () => {
    expect(listen('host: "${PORT}"')).toEqual({ host: '9000' })
    expect(listen("host: '${PORT}'")).toEqual({ host: '9000' })
    expect(listen('host: |-\n    ${PORT}')).toEqual({ host: '9000' })
    expect(listen('host: !!str ${PORT}')).toEqual({ host: '9000' })
  })

  test('what is filled in is a value and never more YAML', () => {
    expect(listen('host: ${ODD}')).toEqual({ host: 'a: [b' })
    expect(listen('host: ${HASH}')).toEqual({ host: 'x # y' })
    for (const text of [
      '{a: 1}',
      '[1]',
      '*a',
      '&a b',
      '!!int 5',
      '"q"',
      '- x',
      '- x\n- y',
      '? x',
      '%TAG',
      '@',
      '`',
      '...',
      '---',
      '|',
      ' 5 ',
    ])
      expect(listen('host: ${X}', { X: text })).toEqual({ host: text })
  })

  test('set to nothing counts as set', () => {
    expect(listen('host: ${EMPTY:x}')).toEqual([expect.stringContaining('listen.host is ""')])
  })

  test('null is null, as in the file itself', () => {
    expect(listen('host: ${NO}')).toEqual([expect.stringContaining('listen.host is null')])
  })

  test('several in one text, a default that is an address, an empty default', () => {
    expect(listen('host: ${NAME}.${ZONE:example.com}${EMPTY}${X:}')).toEqual({ host: 'api.example.com' })
    expect(listen('host: ${X:http://a:1}')).toEqual({ host: 'http://a:1' })
  })

  test('$${ stands for ${', () => {
    expect(listen('host: "$${NAME}"')).toEqual({ host: '${NAME}' })
  })

  test('other dollars stand for themselves', () => {
    for (const text of ['$NAME', '$', '${', '${}', '${1}', '${a b}'])
      expect(listen(`host: "${text}"`)).toEqual({ host: text })
  })

  test('all that are unset are named, each at its place', () => {
    const { problems } = readGatewayText(goodFile('listen:\n  host: "${A}${B}"\n  port: ${C}\n'), 'f')
    expect(problems.map(({ line, column, message }) => [line, column, message.split(' ')[3]])).toEqual([
      [8, 9, 'A'],
      [8, 9, 'B'],
      [9, 9, 'C'],
    ])
  })

  test('names of the prototype are not set', () => {
    expect(listen('host: ${constructor}')).toEqual([expect.stringContaining('constructor is not set')])
  })

  test('keys are not filled in', () => {
    const { problems } = readGatewayText(goodFile('"${PORT}": 1\n'), 'f', environment)
    expect(problems[0]?.message).toContain('${PORT} is unknown')
  })
})

describe('YAML', () => {
  test('anchors and aliases are read; a mistake behind an alias is found where it was written', () => {
    const rule = '&r { algorithm: token-bucket, limit: 60, window: 1m }'
    const more = '  q: { per: address, rule: *r }\n'
    expect(readGatewayText(goodFile(more, rule), 'f').document?.policies['q']?.rule).toEqual({
      algorithm: 'token-bucket',
      limit: 60,
      window: '1m',
    })
    const wrong = readGatewayText(goodFile(more, rule.replace('60', '0')), 'f').problems
    expect(wrong.map(({ path, line, column }) => [path, line, column])).toEqual([
      ['policies.p.rule.limit', 6, 41],
      ['policies.q.rule.limit', 6, 41],
    ])
  })

  test('an alias of itself is an error like any other', () => {
    expect(readGatewayText('version: &v [*v]\n', 'f').problems.length).toBeGreaterThan(0)
    expect(readGatewayText('&d\nversion: 1\npolicies: *d\n', 'f').problems.length).toBeGreaterThan(0)
  })

  test('a variable behind an anchor is filled in once', () => {
    const read = readGatewayText(goodFile('listen: { host: &h "$${A}" }\nadmin: { host: *h }\n'), 'f')
    expect(read.document?.admin).toEqual({ host: '${A}' })
  })

  test('a byte order mark, line ends of Windows, a name like those of the prototype', () => {
    const text = `\uFEFF${goodFile('  constructor: { per: user, rule: { algorithm: gcra, limit: 1, window: 1s } }\n')}`
    expect(Object.keys(readGatewayText(text.replaceAll('\n', '\r\n'), 'f').document?.policies ?? {})).toEqual([
      'p',
      'constructor',
    ])
    expect(readGatewayText(goodFile('__proto__: { a: 1 }\n'), 'f').problems[0]?.path).toBe('__proto__')
    expect(readGatewayText(goodFile('  __proto__: { per: user }\n'), 'f').problems[0]?.path).toBe('policies.__proto__')
  })

  test('JSON, also indented with tabs', () => {
    const document = readGatewayText(goodFile(), 'f').document
    for (const space of [undefined, 2, '\t']) {
      expect(readGatewayText(JSON.stringify(document, undefined, space), 'f.json').document).toEqual(document)
    }
  })

  test('a mistake in JSON has its line', () => {
    const text = JSON.stringify(
      { version: 1, policies: { p: { per: 'client', rule: { algorithm: 'gcra', limit: 0 } } } },
      undefined,
      2,
    )
    const { problems } = readPolicyText(text, 'f.json')
    expect(problems.map(({ line, column, path }) => [line, column, path])).toEqual([
      [8, 9, 'policies.p.rule.limit'],
      [6, 7, 'policies.p.rule.window'],
    ])
  })
})

test('a problem as a line, and all as one error', () => {
  const { problems } = readGatewayText(goodFile('a: 1\nb: 1\n'), 'catraca.yaml')
  expect(problemLine(problems[0] as never)).toMatch(
    /^catraca\.yaml:7:1: a is unknown; allowed: version, .* \[CATRACA_OPTION_UNKNOWN\]$/,
  )
  const error = fileError(problems)
  expect(error.message.split('\n').map((line) => line.slice(0, 30))).toEqual([
    'catraca.yaml:7:1: a is unknown',
    'catraca.yaml:8:1: b is unknown',
  ])
  expect(error.message.match(/\[CATRACA_\w+\]/g)).toHaveLength(2)
  expect({ code: error.code, path: error.path, value: error.value }).toEqual({
    code: 'CATRACA_OPTION_UNKNOWN',
    path: 'a',
    value: 'a',
  })
})

test('where a place of a good file stands', () => {
  const read = readGatewayText(goodFile(), 'f')
  if (read.document === undefined) throw new Error('not read')
  expect(read.locate(['policies', 'p', 'rule', 'limit'])).toEqual({ line: 6, column: 38 })
  expect(read.locate(['policies', 'p', 'mode'])).toEqual({ line: 4, column: 3 })
  expect(read.locate([])).toEqual({ line: 1, column: 1 })
})

describe('a shared store', () => {
  const instances = 'storeFailure: { expectedInstances: live, ceiling: { limit: 5000, window: 1s } }\n'

  test('is read, its password from the environment', () => {
    const text = goodFile(
      `store: { redis: "rediss://app:\${PASS}@redis:6380/2", prefix: shop, timeout: 20ms }\n${instances}`,
    )
    const { document, problems } = readGatewayText(text, 'f', { PASS: 'p%2Fw' })
    expect(problems).toEqual([])
    expect(document?.store).toEqual({ redis: 'rediss://app:p%2Fw@redis:6380/2', prefix: 'shop', timeout: '20ms' })
  })

  test.each(['redis://a', 'redis://127.0.0.1:6379', 'redis://[::1]:6379/0', 'rediss://:pw@redis.example'])(
    '%s',
    (url) => {
      expect(readGatewayText(goodFile(`store: { redis: "${url}" }\n${instances}`), 'f').problems).toEqual([])
    },
  )

  test.each([
    'redis://u:hunter2/@a',
    'redis:/u:hunter2@a',
    'redis://u:hunter2@a:0x1',
    'redis://u:hunter2@a b',
    'http://u:hunter2@a',
    'redis://a?password=hunter2',
    'hunter2',
  ])('%s is refused, and no message shows the password', (url) => {
    const { problems } = readGatewayText(goodFile(`store: { redis: "${url}" }\n${instances}`), 'f')
    expect(problems).toHaveLength(1)
    expect(JSON.stringify(problems)).not.toContain('hunter2')
    if (!url.includes(':')) return
    const asText = readGatewayText(goodFile(`store: "${url}"\n`), 'f').problems
    expect(asText).toHaveLength(1)
    expect(JSON.stringify(asText)).not.toContain('hunter2')
  })
})

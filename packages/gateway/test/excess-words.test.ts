import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PolicyDocument } from 'catraca/policy'
import { expect, onTestFinished, test } from 'vitest'
import { documentWords } from '../src/summary.ts'
import { run } from './command.ts'

const policies: PolicyDocument['policies'] = {
  client: {
    per: 'client',
    cost: 5,
    rule: { algorithm: 'token-bucket', limit: 600, window: '1m', burst: 90 },
    mode: { enforce: { percent: 10, clients: ['acme', 'bravo'] }, else: 'off' },
    candidate: { rule: { algorithm: 'token-bucket', limit: 300, window: '1m', burst: 50 } },
    overflow: [
      { queue: { maxWait: '200ms' } },
      { stale: { maxAge: '10s' } },
      { degrade: { cost: 1 } },
      'accept',
      'mark',
    ],
  },
  plain: { per: 'client', rule: { algorithm: 'fixed-window', limit: 9, window: '1s' }, overflow: ['reject'] },
  some: {
    per: 'client',
    rule: { algorithm: 'fixed-window', limit: 9, window: '1s' },
    mode: { enforce: { clients: ['a', 'b', 'c', 'd', 'e'] } },
  },
}

test('the summary says for whom a policy is, what is tried beside it, and what an excess is answered', () => {
  expect(documentWords({ version: 1, policies })).toEqual([
    'client: 600 per minute, bursts of up to 90, for each client, enforced for 10 %, acme and bravo, off for the others; ' +
      'over it waits at most 200 milliseconds, else gets a copy at most 10 seconds old, else passes with less at cost 1, ' +
      'else is done later, else passes, marked, else is refused',
    'plain: 9 per second, counted by the clock, for each client',
    'some: 9 per second, counted by the clock, for each client, enforced for a, b, c and 2 more, observed for the others',
    'client.candidate: 300 per minute, bursts of up to 50, for each client, candidate for client, observed only',
  ])
  expect(documentWords({ version: 1, policies }, 'pt')).toEqual([
    'client: 600 por minuto, com rajadas de até 90, por cliente, aplicada a 10 %, acme e bravo, desligada para os demais; ' +
      'acima disso espera no máximo 200 milissegundos, senão recebe uma cópia de no máximo 10 segundos, senão passa com ' +
      'menos ao custo 1, senão fica para depois, senão passa, marcada, senão é recusada',
    'plain: 9 por segundo, contados pelo relógio, por cliente',
    'some: 9 por segundo, contados pelo relógio, por cliente, aplicada a a, b, c e 2 outros, só observada para os demais',
    'client.candidate: 300 por minuto, com rajadas de até 50, por cliente, candidata a substituir client, só observada',
  ])
})

test('catraca explain says the same of a request, one line each', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'catraca-excess-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'catraca.json')
  writeFileSync(file, JSON.stringify({ version: 1, upstreams: { app: 'http://127.0.0.1:1' }, policies }))
  const { out, err, exit } = run('explain', '-c', file, '--path', '/', '--client', 'acme')
  expect([await exit, err()]).toEqual([0, ''])
  const lines = out().split('\n')
  expect(lines).toContain('  mode     enforced for 10 %, acme and bravo, off for the others')
  expect(lines).toContain(
    '  over it  waits at most 200 milliseconds, else gets a copy at most 10 seconds old, else passes with less at cost 1, ' +
      'else is done later, else passes, marked, else is refused',
  )
  expect(lines).toContain('client.candidate (observed only)')
  expect(lines).toContain('  mode     candidate for client, observed only')
  expect(lines.filter((line) => line.startsWith('  over it'))).toHaveLength(1)
  const portuguese = run('explain', '-c', file, '--path', '/', '--client', 'acme', '--language', 'pt')
  await portuguese.exit
  expect(portuguese.out()).toContain('  modo     aplicada a 10 %, acme e bravo, desligada para os demais\n')
  expect(portuguese.out()).toContain('  acima    espera no máximo 200 milissegundos, senão')
  const json = run('explain', '-c', file, '--path', '/', '--client', 'acme', '--json')
  await json.exit
  const [client, , , candidate] = (JSON.parse(json.out()) as { policies: Record<string, unknown>[] }).policies
  expect(client).toMatchObject({ policy: 'client', enforcedFor: { pt: expect.stringMatching('10 %') } })
  expect(client).toMatchObject({ overflow: { en: expect.stringMatching('^waits') } })
  expect(candidate).toMatchObject({ policy: 'client.candidate', candidateOf: 'client' })
})

test('catraca explain takes values of every part of a key', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'catraca-excess-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'catraca.json')
  const per = ['api-key', 'plan', 'route', 'header:x-a', 'cookie:a', 'query:a', 'path:id', 'body:a', 'address/24']
  const rule = { algorithm: 'fixed-window', limit: 9, window: '1s' }
  const document = {
    version: 1,
    hashSecret: 'a secret of the whole fleet',
    plans: { names: ['free'], default: 'free' },
    upstreams: { app: 'http://127.0.0.1:1' },
    policies: { all: { per, match: { routes: ['/items/:id'] }, rule } },
  }
  writeFileSync(file, JSON.stringify(document))
  const flags = ['api-key=secret', 'header:X-A=1', 'cookie:a=2', 'query:a=3', 'body:a=4'].flatMap((one) => [
    '--attribute',
    one,
  ])
  const { out, err, exit } = run('explain', '-c', file, '--path', '/items/7', '--client', 'acme', ...flags)
  expect([await exit, err()]).toEqual([0, ''])
  expect(out()).not.toContain('(missing)')
  expect(out()).not.toContain('secret')
  expect(out()).toMatch(
    /plan=free route=\/items\/:id header:x-a=[0-9a-f]{64} .* path:id=7 body:a=4 address\/24=192\.0\.2\./,
  )
  const wrong = run('explain', '-c', file, '--path', '/items/7', '--attribute', 'cookie=1')
  expect(await wrong.exit).not.toBe(0)
  expect(wrong.err()).toContain('cookie:<name>=<value>')
})

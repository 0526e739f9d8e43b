import {
  concurrency,
  fixedWindow,
  gcra,
  leakyMeter,
  leakyQueue,
  quota,
  type Rule,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from 'catraca'
import { describe, expect, test } from 'vitest'
import type * as Registry from '../../src/algorithms/registry.ts'
import type * as Words from '../../src/policy/words.ts'

/** A literal path into another project is an error of the compiler. */
const [registryFile, wordsFile] = ['algorithms/registry', 'policy/words'].map(
  (file) => new URL(`../../src/${file}.ts`, import.meta.url).href,
) as [string, string]
const { registry } = (await import(registryFile)) as typeof Registry
const { ruleWords } = (await import(wordsFile)) as typeof Words

test('acceptance 50: a bucket of the documents is said as a product would say it, in both languages', () => {
  const rule = tokenBucket({ limit: 10, window: '1s', burst: 20 })
  expect(ruleWords(rule, 'en')).toBe('10 per second, bursts of up to 20')
  expect(ruleWords(rule, 'pt')).toBe('10 por segundo, com rajadas de até 20')
})

const examples: [rule: Rule, en: string, pt: string][] = [
  [
    tokenBucket({ limit: 600, window: '1m', burst: 90 }),
    '600 per minute, bursts of up to 90',
    '600 por minuto, com rajadas de até 90',
  ],
  [
    tokenBucket({ limit: 60, window: '1m' }),
    '60 per minute, bursts of up to 60',
    '60 por minuto, com rajadas de até 60',
  ],
  [
    gcra({ limit: 1, window: '15m', burst: 1 }),
    '1 per 15 minutes, bursts of up to 1',
    '1 a cada 15 minutos, com rajadas de até 1',
  ],
  [
    leakyMeter({ limit: 1_000, window: '1h', burst: 1_200_000 }),
    '1,000 per hour, bursts of up to 1,200,000',
    '1.000 por hora, com rajadas de até 1.200.000',
  ],
  [
    leakyQueue({ limit: 10, window: '1s', capacity: 20 }),
    '10 per second, evenly spaced, up to 20 waiting for at most 2 seconds',
    '10 por segundo, em intervalos iguais, até 20 na fila por no máximo 2 segundos',
  ],
  [
    leakyQueue({ limit: 7, window: '1s', capacity: 20 }),
    '7 per second, evenly spaced, up to 20 waiting for at most 2.858 seconds',
    '7 por segundo, em intervalos iguais, até 20 na fila por no máximo 2,858 segundos',
  ],
  [
    leakyQueue({ limit: 1_000, window: '1s', capacity: 1 }),
    '1,000 per second, evenly spaced, up to 1 waiting for at most 1 millisecond',
    '1.000 por segundo, em intervalos iguais, até 1 na fila por no máximo 1 milissegundo',
  ],
  [
    leakyQueue({ limit: 3_000, window: '1s', capacity: 1 }),
    '3,000 per second, evenly spaced, up to 1 waiting for at most 0.334 milliseconds',
    '3.000 por segundo, em intervalos iguais, até 1 na fila por no máximo 0,334 milissegundo',
  ],
  [
    fixedWindow({ limit: 100, window: '1m' }),
    '100 per minute, counted by the clock',
    '100 por minuto, contados pelo relógio',
  ],
  [
    fixedWindow({ limit: 1, window: '2d', anchor: 'first' }),
    '1 per 2 days, counted from the first request',
    '1 a cada 2 dias, contado a partir da primeira requisição',
  ],
  [
    slidingCounter({ limit: 5, window: '15m' }),
    '5 per 15 minutes, estimated over a sliding window',
    '5 a cada 15 minutos, estimados em janela deslizante',
  ],
  [
    slidingCounter({ limit: 1, window: '1d' }),
    '1 per day, estimated over a sliding window',
    '1 por dia, estimado em janela deslizante',
  ],
  [
    slidingCounter({ limit: 60, window: '1m', subWindows: 6 }),
    '60 per minute, estimated over a sliding window of 6 parts',
    '60 por minuto, estimados em janela deslizante de 6 partes',
  ],
  [slidingLog({ limit: 4, window: '1h' }), '4 in any hour', '4 em qualquer intervalo de 1 hora'],
  [slidingLog({ limit: 4, window: '36h' }), '4 in any 36 hours', '4 em qualquer intervalo de 36 horas'],
  [slidingLog({ limit: 4, window: '90s' }), '4 in any 90 seconds', '4 em qualquer intervalo de 90 segundos'],
  [slidingLog({ limit: 4, window: '1.5s' }), '4 in any 1.5 seconds', '4 em qualquer intervalo de 1,5 segundo'],
  [slidingLog({ limit: 4, window: '2.5s' }), '4 in any 2.5 seconds', '4 em qualquer intervalo de 2,5 segundos'],
  [
    slidingLog({ limit: 4, window: 1_000_250 }),
    '4 in any 1,000.25 seconds',
    '4 em qualquer intervalo de 1.000,25 segundos',
  ],
  [
    slidingLog({ limit: 4, window: '250ms' }),
    '4 in any 250 milliseconds',
    '4 em qualquer intervalo de 250 milissegundos',
  ],
  [slidingLog({ limit: 4, window: '1ms' }), '4 in any millisecond', '4 em qualquer intervalo de 1 milissegundo'],
  [
    slidingLog({ limit: 4, window: '0.001ms' }),
    '4 in any 0.001 milliseconds',
    '4 em qualquer intervalo de 0,001 milissegundo',
  ],
  [slidingLog({ limit: 4, window: '36500d' }), '4 in any 36,500 days', '4 em qualquer intervalo de 36.500 dias'],
  [
    quota({ limit: 500_000, period: 'day', timeZone: 'America/Sao_Paulo' }),
    '500,000 per day (America/Sao_Paulo)',
    '500.000 por dia (America/Sao_Paulo)',
  ],
  [quota({ limit: 999, period: 'week' }), '999 per week (UTC)', '999 por semana (UTC)'],
  [
    quota({ limit: 1_000, period: 'month', anchor: '2027-01-31' }),
    '1,000 per month (UTC, from 2027-01-31)',
    '1.000 por mês (UTC, a partir de 2027-01-31)',
  ],
  [
    quota({ limit: 1e15, period: 'year' }),
    '1,000,000,000,000,000 per year (UTC)',
    '1.000.000.000.000.000 por ano (UTC)',
  ],
  [concurrency({ limit: 30 }), '30 at the same time', '30 ao mesmo tempo'],
  [concurrency({ limit: 1 }), '1 at the same time', '1 ao mesmo tempo'],
]

describe('every rule in words', () => {
  test.each(examples.map(([rule, en, pt]) => ({ rule, en, pt })))('$en', ({ rule, en, pt }) => {
    expect(ruleWords(rule, 'en')).toBe(en)
    expect(ruleWords(rule, 'pt')).toBe(pt)
  })

  test('the examples show every kind of rule', () => {
    expect(new Set(examples.map(([rule]) => rule.algorithm))).toEqual(new Set(Object.keys(registry)))
  })
})

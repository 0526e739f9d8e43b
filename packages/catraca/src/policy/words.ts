import type { Rule } from '../core/rule.ts'
import { Tongue } from './tongue.ts'

/** A language of {@link ruleWords}. */
export type Language = 'en' | 'pt'

/**
 * A rule in plain words: `10 per second, bursts of up to 20`, `10 por segundo, com rajadas de até 20`. The same text on
 * every machine.
 */
export function ruleWords(rule: Rule, language: Language): string {
  return language === 'en' ? english(figuresOf(rule)) : portuguese(figuresOf(rule))
}

interface Figures {
  readonly algorithm: string
  /** Units per window or period, or at the same time. */
  readonly limit: number
  /** Units that can pass at once; of a queue its places. */
  readonly capacity: number
  readonly windowUs: number
  readonly period: string
  readonly timeZone: string
  /** Of a fixed window `clock` or `first`, of a quota a date or nothing. */
  readonly anchor: string
  /** Parts in which a sliding window is counted. */
  readonly parts: number
}

function figuresOf({ algorithm, limit: capacity, options }: Rule): Figures {
  const { limit = capacity, windowMs = 0, period = '', timeZone = '', anchor = '', subWindows = 1 } = options
  return {
    algorithm,
    limit: Number(limit),
    capacity,
    windowUs: Math.round(Number(windowMs) * 1_000),
    period: String(period),
    timeZone: String(timeZone),
    anchor: String(anchor),
    parts: Number(subWindows),
  }
}

const inEnglish = new Tongue(
  ',',
  '.',
  {
    day: ['day', 'days'],
    hour: ['hour', 'hours'],
    minute: ['minute', 'minutes'],
    second: ['second', 'seconds'],
    millisecond: ['millisecond', 'milliseconds'],
  },
  (value) => value === 1,
)

function english({ algorithm, limit, capacity, windowUs, period, timeZone, anchor, parts }: Figures): string {
  const number = inEnglish.number(limit)
  const span = inEnglish.unit(windowUs) ?? inEnglish.length(windowUs)
  switch (algorithm) {
    case 'fixed-window':
      return `${number} per ${span}, counted ${anchor === 'first' ? 'from the first request' : 'by the clock'}`
    case 'sliding-log':
      return `${number} in any ${span}`
    case 'sliding-counter':
      return `${number} per ${span}, estimated over a sliding window${parts === 1 ? '' : ` of ${parts} parts`}`
    case 'leaky-queue': {
      const wait = inEnglish.length(worstWaitUs(limit, capacity, windowUs))
      return `${number} per ${span}, evenly spaced, up to ${inEnglish.number(capacity)} waiting for at most ${wait}`
    }
    case 'quota':
      return `${number} per ${period} (${timeZone}${anchor === '' ? '' : `, from ${anchor}`})`
    case 'concurrency':
      return `${number} at the same time`
    default:
      return `${number} per ${span}, bursts of up to ${inEnglish.number(capacity)}`
  }
}

const inPortuguese = new Tongue(
  '.',
  ',',
  {
    day: ['dia', 'dias'],
    hour: ['hora', 'horas'],
    minute: ['minuto', 'minutos'],
    second: ['segundo', 'segundos'],
    millisecond: ['milissegundo', 'milissegundos'],
  },
  // The plural begins at two: 1,5 segundo.
  (value) => value < 2,
)
const portuguesePeriods: Readonly<Record<string, string>> = { day: 'dia', week: 'semana', month: 'mês', year: 'ano' }

function portuguese({ algorithm, limit, capacity, windowUs, period, timeZone, anchor, parts }: Figures): string {
  const number = inPortuguese.number(limit)
  const unit = inPortuguese.unit(windowUs)
  const per = `${number} ${unit === undefined ? `a cada ${inPortuguese.length(windowUs)}` : `por ${unit}`}`
  const ending = limit === 1 ? 'o' : 'os'
  switch (algorithm) {
    case 'fixed-window':
      return `${per}, contad${ending} ${anchor === 'first' ? 'a partir da primeira requisição' : 'pelo relógio'}`
    case 'sliding-log':
      // "Em qualquer hora" would mean at any time of day.
      return `${number} em qualquer intervalo de ${inPortuguese.length(windowUs)}`
    case 'sliding-counter':
      return `${per}, estimad${ending} em janela deslizante${parts === 1 ? '' : ` de ${parts} partes`}`
    case 'leaky-queue': {
      const wait = inPortuguese.length(worstWaitUs(limit, capacity, windowUs))
      return `${per}, em intervalos iguais, até ${inPortuguese.number(capacity)} na fila por no máximo ${wait}`
    }
    case 'quota':
      return `${number} por ${portuguesePeriods[period]} (${timeZone}${anchor === '' ? '' : `, a partir de ${anchor}`})`
    case 'concurrency':
      return `${number} ao mesmo tempo`
    default:
      return `${per}, com rajadas de até ${inPortuguese.number(capacity)}`
  }
}

/** How each language writes numbers and lengths of time. */
export const tongues: Readonly<Record<Language, Tongue>> = { en: inEnglish, pt: inPortuguese }

/** How long the last of a full queue waits, capacity × window ÷ limit: rounded up, to whole milliseconds from one up. */
function worstWaitUs(limit: number, capacity: number, windowUs: number): number {
  const rate = BigInt(limit)
  const us = (BigInt(capacity) * BigInt(windowUs) + rate - 1n) / rate
  return Number(us < 1_000n ? us : ((us + 999n) / 1_000n) * 1_000n)
}

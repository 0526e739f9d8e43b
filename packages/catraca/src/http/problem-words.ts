import type { Reason } from '../core/reason.ts'
import type { Language } from '../policy/words.ts'

/** What a problem document says in one language. Sentences end with a full stop. */
export interface ProblemWords {
  readonly tooMany: string
  readonly atCapacity: string
  readonly limit: (rule: string) => string
  readonly neverFits: (cost: number, most: number) => string
  readonly blocked: string
  /** Reasons that say more about the service than about the caller (003:218: the caller's own limits answer 429). */
  readonly unavailable: Partial<Record<Reason, string>>
  readonly everybody: string
  readonly again: (seconds: number) => string
  readonly againOrUse: (seconds: number, instead: string) => string
  readonly use: (instead: string) => string
  /** Between two things that the caller can do instead. */
  readonly or: string
}

export const problemWords: Readonly<Record<Language, ProblemWords>> = {
  en: {
    tooMany: 'Too many requests',
    atCapacity: 'Service at capacity',
    limit: (rule) => `The limit is ${rule}.`,
    neverFits: (cost, most) => `A request of ${cost} units never fits: at most ${most} pass at once.`,
    blocked: 'Requests from here are blocked.',
    unavailable: {
      'store-closed': 'The limit cannot be checked at the moment, and nothing passes unchecked.',
      ceiling: 'The service is at the ceiling of what it takes while its limits are counted apart.',
      'queue-full': 'Too many requests are waiting already.',
    },
    everybody: 'All callers together ask for more than the service can take.',
    again: (seconds) => `Try again in ${seconds} s.`,
    againOrUse: (seconds, instead) => `Try again in ${seconds} s, or use ${instead}.`,
    use: (instead) => `Use ${instead}.`,
    or: ', or ',
  },
  pt: {
    tooMany: 'Requisições demais',
    atCapacity: 'Serviço no limite da capacidade',
    limit: (rule) => `O limite é de ${rule}.`,
    neverFits: (cost, most) => `Uma requisição de ${cost} unidades nunca passa: cabem no máximo ${most} de uma vez.`,
    blocked: 'As requisições desta origem estão bloqueadas.',
    unavailable: {
      'store-closed': 'O limite não pode ser verificado no momento, e nada passa sem verificação.',
      ceiling: 'O serviço está no teto do que aceita enquanto os limites são contados em separado.',
      'queue-full': 'Já há requisições demais à espera.',
    },
    everybody: 'Todos os clientes juntos pedem mais do que o serviço suporta.',
    again: (seconds) => `Tente de novo em ${seconds} s.`,
    againOrUse: (seconds, instead) => `Tente de novo em ${seconds} s ou use ${instead}.`,
    use: (instead) => `Use ${instead}.`,
    or: ' ou ',
  },
}

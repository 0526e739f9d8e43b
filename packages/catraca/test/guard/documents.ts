import type { PolicyDocument } from 'catraca/policy'

/** The document of the design page, section 2, without what this version does not have. */
export const designDocument: PolicyDocument = {
  version: 1,
  trust: { proxies: 1, from: ['10.0.0.0/8'] },
  plans: { names: ['free', 'pro', 'enterprise'], default: 'free' },
  defaults: { onStoreFailure: 'local', expectedInstances: 6 },
  exempt: { routes: ['GET /health/**'], addresses: [], clients: [] },
  policies: {
    'address-net': { per: 'address', rule: { algorithm: 'token-bucket', limit: 300, window: '1m', burst: 60 } },
    anonymous: {
      match: { identity: 'anonymous' },
      per: 'address',
      rule: { algorithm: 'token-bucket', limit: 20, window: '1m', burst: 5 },
    },
    'per-client': {
      match: { identity: 'client' },
      per: 'client',
      rule: { algorithm: 'token-bucket', limit: 60, window: '1m', burst: 10 },
      plans: {
        pro: { limit: 600, window: '1m', burst: 90 },
        enterprise: { limit: 6000, window: '1m', burst: 900 },
      },
      clients: { acme: { limit: 1200, window: '1m', burst: 180 } },
      overflow: ['reject'],
      advice: { batch: 'POST /v1/lotes/importar' },
    },
    expensive: {
      match: {
        identity: 'client',
        routes: ['GET /v1/relatorios/:id/exportar', 'POST /v1/buscas/avancada', 'POST /v1/lotes/importar'],
      },
      per: 'client',
      insteadOf: 'per-client',
      cost: 25,
      rule: { algorithm: 'token-bucket', limit: 250, window: '1m', burst: 50 },
    },
    login: {
      match: { routes: ['POST /login'] },
      per: 'address',
      rule: { algorithm: 'sliding-counter', limit: 5, window: '15m' },
      onStoreFailure: 'closed',
    },
    daily: {
      match: { identity: 'client' },
      per: 'client',
      rule: { algorithm: 'quota', limit: 500_000, period: 'day', timeZone: 'America/Sao_Paulo' },
    },
    'in-flight': {
      match: { identity: 'client' },
      per: 'client',
      rule: { algorithm: 'concurrency', limit: 30, permitTtl: '30s' },
    },
    holds: {
      match: { routes: ['POST /api/holds'] },
      per: ['user', 'body:eventId'],
      rule: { algorithm: 'sliding-log', limit: 4, window: '1h' },
    },
    'whole-service': {
      per: 'service',
      rule: { algorithm: 'token-bucket', limit: 4000, window: '1s' },
      mode: 'observe',
    },
  },
}

/** A copy of the design document with some policies changed, added or, when undefined, taken out. */
export function changed(
  policies: Record<string, object | undefined>,
  rest: Partial<PolicyDocument> = {},
): PolicyDocument {
  const all = Object.entries({ ...designDocument.policies, ...policies }).filter(([, entry]) => entry !== undefined)
  return { ...designDocument, ...rest, policies: Object.fromEntries(all) as PolicyDocument['policies'] }
}

import { documentShape, type ObjectShape, type Shape } from 'catraca/policy'

function listen(words: string): ObjectShape {
  return {
    kind: 'object',
    required: [],
    words,
    keys: {
      port: { kind: 'integer', unit: 'the port', min: 0, max: 65_535, words: 'port; 0 takes a free one' },
      host: { kind: 'text', like: 'an address or name of this machine', words: 'address or name of this machine' },
    },
  }
}

const origin: Shape = {
  kind: 'pattern',
  like: 'an http or https origin such as "http://127.0.0.1:3000"',
  pattern: '^https?://[^\\s/?#@]+/?$',
  words: 'an http or https origin',
}

function duration(words: string, standard: `${number}${'s' | 'ms'}`): Shape {
  return { kind: 'duration', default: standard, words }
}

const dialect: Shape = {
  kind: 'choice',
  of: ['ietf', 'legacy', 'x-ratelimit', 'x-ratelimit-epoch', 'none'],
  words: 'a form of header fields',
}

function count(unit: string, min: number, max: number, words: string, standard?: number): Shape {
  return { kind: 'integer', unit, min, max, words, ...(standard !== undefined && { default: standard }) }
}

/** What the address of a store may be. */
export const redisLike =
  'an address such as "redis://127.0.0.1:6379" or "rediss://name:password@redis.example:6380/0", with special characters ' +
  'of the password as %xx'

/** The gateway's own part of its file. */
export const gatewayKeys: Readonly<Record<string, Shape>> = {
  listen: listen('where callers connect; port 8080 by default'),
  admin: listen('where liveness and readiness are served, on 127.0.0.1 by default; nowhere when it is left out'),
  store: {
    kind: 'either',
    of: [
      { kind: 'choice', of: ['memory'], words: 'in the process' },
      {
        kind: 'object',
        required: ['redis'],
        words: 'a store that several instances share',
        keys: {
          redis: {
            kind: 'pattern',
            secret: true,
            like: redisLike,
            pattern: '^rediss?://(?:[^\\s/?#@]*@)?[^\\s/?#@]+(?:/[0-9]{0,5})?$',
            words: 'the address of Redis or Valkey, with rediss:// over TLS; a password may come from ${NAME}',
          },
          prefix: {
            kind: 'pattern',
            like: '1 to 64 characters, none of them a brace or a blank',
            pattern: '^[^{}\\s]{1,64}$',
            default: 'catraca',
            words: 'begins all keys in the store',
          },
          timeout: duration('1ms to 60s, for an answer of the store; after it policies decide without', '50ms'),
        },
      },
    ],
    words: 'where what was used is kept: `memory` (default), or an object with redis for a store that instances share',
  },
  workers: {
    kind: 'integer',
    unit: 'processes',
    min: 1,
    max: 64,
    default: 1,
    words:
      'processes that share the port; with `store: memory` the limits hold across all of them, with redis each is an instance',
  },
  auth: {
    kind: 'object',
    required: [],
    words: 'how callers are verified',
    keys: {
      apiKeys: {
        kind: 'object',
        required: ['keys'],
        words: 'clients by the hash of their key',
        keys: {
          header: {
            kind: 'pattern',
            like: 'the name of a header',
            pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
            default: 'x-api-key',
            words: 'the header that carries the key; it is not passed on',
          },
          keys: {
            kind: 'list',
            min: 0,
            words: 'the keys',
            of: {
              kind: 'object',
              required: ['sha256', 'client'],
              words: 'one key',
              keys: {
                sha256: {
                  kind: 'pattern',
                  like: '64 hexadecimal digits in lower case, as `printf %s KEY | sha256sum` prints them',
                  pattern: '^[0-9a-f]{64}$',
                  words: 'SHA-256 of the key: `printf %s KEY | sha256sum`',
                },
                client: { kind: 'text', like: 'the name of a client', words: 'the client the key belongs to' },
                plan: { kind: 'text', like: 'one of plans.names', words: "the client's plan" },
                tenant: { kind: 'text', like: 'the name of a tenant', words: 'the tenant of the client' },
                id: {
                  kind: 'text',
                  like: 'a name for the key',
                  words: 'names the key in logs; default: the start of the hash',
                },
              },
            },
          },
        },
      },
    },
  },
  upstreams: {
    kind: 'map',
    name: 'upstream',
    min: 1,
    pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$',
    words: 'the services by name',
    of: {
      kind: 'either',
      words: 'an origin, or an object with urls',
      of: [
        origin,
        {
          kind: 'object',
          required: ['urls'],
          words: 'a service behind several origins',
          keys: { urls: { kind: 'list', min: 1, of: origin, words: 'origins that take turns' } },
        },
      ],
    },
  },
  routes: {
    kind: 'list',
    min: 1,
    words: 'which service answers what; the first that matches. With one upstream it can be left out',
    of: {
      kind: 'object',
      required: ['path', 'upstream'],
      words: 'a route',
      keys: {
        host: {
          kind: 'pattern',
          like: 'a host name without port, such as "api.example.com"',
          pattern: '^([A-Za-z0-9_.-]+|\\[[0-9A-Fa-f:.]+\\])$',
          words: 'the name callers ask for; any when it is left out',
        },
        path: {
          kind: 'text',
          like: 'a path such as "/auth/**"',
          words: 'a path; `**` stands for any number of segments',
        },
        upstream: { kind: 'text', like: 'the name of an upstream', words: 'the service that answers' },
      },
    },
  },
  timeouts: {
    kind: 'object',
    required: [],
    words: 'how long to wait',
    keys: {
      connect: duration('for a connection to the upstream', '1s'),
      response: duration('for the head of its answer', '5s'),
      bodyIdle: duration('for the next bytes of its answer', '5s'),
      clientIdle: duration('for a caller who neither sends nor reads in the middle of a request', '60s'),
    },
  },
  answers: {
    kind: 'object',
    required: [],
    words: 'how callers are told of limits',
    keys: {
      headers: {
        kind: 'either',
        of: [dialect, { kind: 'list', min: 1, of: dialect, words: 'forms of header fields' }],
        words: 'header fields that say what the limit is, in one form or several; ietf by default',
      },
      cacheable: {
        kind: 'choice',
        of: ['include', 'omit'],
        default: 'include',
        words: 'whether they stand on answers that shared caches may keep',
      },
      exposeHeaders: { kind: 'flag', default: false, words: 'scripts of other origins may read them' },
      language: {
        kind: 'choice',
        of: ['en', 'pt'],
        default: 'en',
        words: 'of refusals where Accept-Language asks for none that is there',
      },
    },
  },
  cache: {
    kind: 'object',
    required: [],
    words: 'copies of answers for overflow with stale, in the memory of the process',
    keys: {
      maxBytes: count('bytes', 1_024, 2 ** 40, 'bytes of all copies together; 32 MiB by default'),
      maxBodyBytes: count('bytes', 1, 2 ** 40, 'bytes of one body; 1 MiB by default'),
    },
  },
  jobs: {
    kind: 'object',
    required: [],
    words: 'accepted work for overflow with accept, carried out by this process',
    keys: {
      path: {
        kind: 'pattern',
        like: 'a path such as "/jobs", without a slash at the end',
        pattern: '^(?:/[A-Za-z0-9_.~-]+)+$',
        default: '/jobs',
        words: 'where callers ask for the status of their work',
      },
      maxQueued: count('jobs', 1, 100_000, 'jobs that wait at the same time', 100),
      maxPerCaller: count('jobs', 1, 100_000, 'of them, jobs of one caller; a quarter by default'),
      concurrency: count('jobs', 1, 1_000, 'jobs that run at the same time', 1),
      maxKept: count('jobs', 0, 100_000, 'jobs whose end is remembered', 1_000),
    },
  },
  log: { kind: 'choice', of: ['off', 'text', 'json'], default: 'text', words: 'a line for each request' },
}

/** The shape of a gateway file: the policy document and the gateway's own part. */
export const gatewayShape: ObjectShape = {
  kind: 'object',
  required: [...documentShape.required, 'upstreams'],
  words: 'a gateway file',
  keys: { ...documentShape.keys, ...gatewayKeys },
}

import { registry } from '../algorithms/registry.ts'
import { codes } from '../core/errors.ts'
import { leaseParameters } from '../stores/lease/options.ts'
import { overflowShape as overflow } from './overflow.ts'
import type { ObjectShape, Shape } from './shape.ts'

const namePattern = '^[A-Za-z][A-Za-z0-9_.-]{0,63}$'
const maxHops = 32
const clientLike = 'a text that is not empty'

const storeFailure: Shape = {
  kind: 'choice',
  of: ['local', 'open', 'closed'],
  words: 'while the shared store does not answer: count in the instance, let pass, or refuse',
}

const expectedInstances: Shape & { kind: 'integer' } = {
  kind: 'integer',
  unit: 'instances',
  min: 1,
  max: 100_000,
  words: 'instances that share a limit; each counts its part while the store does not answer',
}

const algorithms = Object.entries(registry)
const rules = Object.fromEntries(
  algorithms.map(([name, { parameters }]): [string, ObjectShape] => [
    name,
    {
      kind: 'object',
      keys: parameters,
      required: Object.entries(parameters).flatMap(([key, { default: value }]) => (value === undefined ? [key] : [])),
      words: `options of ${name}`,
    },
  ]),
)

/** What a plan or client may say otherwise, for a policy of the given algorithm. */
export function overrideShape(algorithm: string): ObjectShape {
  return {
    kind: 'object',
    keys: { ...registry[algorithm]?.parameters, overflow },
    required: [],
    words: 'options of the rule that differ, and `overflow`',
  }
}

/** Any algorithm's options; which of them fit is known once the rule is. */
const anyOverride: Shape = {
  kind: 'map',
  name: 'option',
  min: 0,
  of: { kind: 'either', of: anyOption(), words: 'the value of an option of the rule' },
  words: 'options of the rule that differ, and `overflow`',
}

function anyOption(): Shape[] {
  return [
    { kind: 'integer', unit: 'units', min: 1, max: Number.MAX_SAFE_INTEGER, words: 'a number' },
    { kind: 'text', like: clientLike, words: 'a text' },
    { kind: 'duration', words: 'a duration' },
    overflow,
  ]
}

const ruleShape: Shape = { kind: 'variant', key: 'algorithm', of: rules, words: 'the algorithm and its options' }
const planOverrides: Shape = {
  kind: 'map',
  name: 'plan',
  min: 0,
  of: anyOverride,
  words: 'what differs for clients of a plan',
}
const clientOverrides: Shape = {
  kind: 'map',
  name: 'client',
  min: 0,
  of: anyOverride,
  words: 'what differs for one client',
}
const cost: Shape & { kind: 'integer' } = {
  kind: 'integer',
  unit: 'units',
  min: 1,
  max: Number.MAX_SAFE_INTEGER,
  default: 1,
  words: 'units each request costs',
}

const mode: Shape = {
  kind: 'either',
  of: [
    { kind: 'choice', of: ['off', 'observe', 'enforce'], words: 'not asked, counted and reported, or refusing' },
    {
      kind: 'object',
      required: ['enforce'],
      words: 'enforced for part of the callers',
      keys: {
        enforce: {
          kind: 'object',
          required: [],
          words: 'for whom it is enforced: a part of all callers, some clients, or both',
          keys: {
            percent: {
              kind: 'integer',
              unit: 'percent',
              min: 0,
              max: 100,
              default: 0,
              words: 'of all keys; a key is always in or always out, and stays in when this grows',
            },
            clients: {
              kind: 'list',
              min: 0,
              of: { kind: 'text', like: clientLike, words: 'a client' },
              words: 'clients it is enforced for',
            },
          },
        },
        else: {
          kind: 'choice',
          of: ['off', 'observe'],
          default: 'observe',
          words: 'what it does for all others',
        },
      },
    },
  ],
  words:
    'off, observe or enforce (default): not asked, counted and reported, or refusing; or enforce for part of the callers',
}

const policy: ObjectShape = {
  kind: 'object',
  required: ['per', 'rule'],
  words: 'one policy: whom it counts and what it allows',
  keys: {
    match: {
      kind: 'object',
      required: [],
      words: 'the requests it is about; all when it is left out',
      keys: {
        identity: {
          kind: 'choice',
          of: ['anonymous', 'client', 'user'],
          words: 'who must be known: nobody verified, a client, a user',
        },
        routes: {
          kind: 'list',
          min: 1,
          of: { kind: 'text', like: 'a method and a path such as "GET /v1/reports/:id"', words: 'a route' },
          words: 'methods and paths; `:name` and `*` stand for one segment, `**` for any number',
        },
      },
    },
    per: {
      kind: 'either',
      of: [
        { kind: 'text', like: 'what makes one caller, such as "client"', words: 'what makes one caller' },
        {
          kind: 'list',
          min: 1,
          of: { kind: 'text', like: 'what makes one caller, such as "client"', words: 'a part of the key' },
          words: 'several that make one key together',
        },
      ],
      words:
        'what makes one caller: address, address/48, client, user, tenant, service, api-key, plan, route, header:<name>, ' +
        'cookie:<name>, query:<name>, path:<name>, body:<field>, or a list',
    },
    tag: {
      kind: 'text',
      like: 'one part of a key, such as "tenant"',
      words:
        'by what a cluster keeps states together, so that policies with equal values are charged all or nothing: a part of ' +
        'per, tenant where per counts clients or users, or service; the key itself when it is left out',
    },
    rule: ruleShape,
    plans: planOverrides,
    clients: clientOverrides,
    cost,
    insteadOf: {
      kind: 'text',
      like: 'the name of another policy',
      words: 'the policy this one stands in for where it is enforced',
    },
    charge: {
      kind: 'choice',
      of: ['admitted', 'attempts'],
      default: 'admitted',
      words: 'whether a refusal by a later stage gives the charge back (admitted) or not (attempts)',
    },
    mode,
    overflow,
    advice: {
      kind: 'map',
      name: 'action',
      min: 0,
      of: { kind: 'text', like: 'what the caller can do instead', words: 'what to do' },
      words: 'what the caller can do instead; named in the refusal',
    },
    onStoreFailure: storeFailure,
    onRuleChange: {
      kind: 'choice',
      of: ['keep', 'proportional', 'reset'],
      default: 'keep',
      words: 'what becomes of 60 used of 100 when the limit becomes 200: 140, 80 or 200 are left',
    },
    refunds: {
      kind: 'flag',
      default: false,
      words:
        'true where charges are given back as a matter of course: refusals of a shared store are then not remembered',
    },
    never: {
      kind: 'object',
      required: ['limit', 'window'],
      words: 'what `check` holds the rule to: never more than limit in any window',
      keys: {
        limit: { kind: 'integer', unit: 'units', min: 1, max: 1e12, words: 'the most units' },
        window: { kind: 'duration', words: 'in any span of this length' },
      },
    },
    candidate: {
      kind: 'object',
      required: ['rule'],
      words: 'a rule that is tried beside this one: counted and reported, refusing nothing',
      keys: { rule: ruleShape, plans: planOverrides, clients: clientOverrides, cost },
    },
    lease: {
      kind: 'object',
      required: ['block'],
      words: 'beside a shared store: how instances hold units, so that they decide without a trip',
      keys: leaseParameters,
    },
    exact: {
      kind: 'flag',
      default: false,
      words: 'true for a limit that is asked for each time, as what is billed; it cannot have a lease',
    },
  },
}

const checkSwitches = Object.fromEntries(
  Object.entries(codes).flatMap(([code, { kind, words }]): [string, Shape][] =>
    kind === 'check'
      ? [[code, { kind: 'choice', of: ['on', 'off'], default: 'on', words: `whether to say that ${words}` }]]
      : [],
  ),
)

/** The shape of a policy document. */
export const documentShape: ObjectShape = {
  kind: 'object',
  required: ['version', 'policies'],
  words: 'a policy document',
  keys: {
    version: { kind: 'integer', unit: 'the format', min: 1, max: 1, words: 'the version of this format' },
    trust: {
      kind: 'object',
      required: [],
      words: 'how the address of the caller is found; without it, the address of the connection counts',
      keys: {
        proxies: {
          kind: 'integer',
          unit: 'proxies',
          min: 0,
          max: maxHops,
          words: 'proxies in front, each of which appends the address it saw',
        },
        from: {
          kind: 'list',
          min: 1,
          of: { kind: 'text', like: 'an address or a network such as "10.0.0.0/8"', words: 'an address or network' },
          words: 'addresses and networks whose forwarding header is believed',
        },
        header: {
          kind: 'choice',
          of: ['x-forwarded-for', 'forwarded'],
          default: 'x-forwarded-for',
          words: 'the header that is believed; the other one is ignored',
        },
        ipv6Prefix: {
          kind: 'integer',
          unit: 'bits',
          min: 32,
          max: 128,
          default: 64,
          words: 'bits of an IPv6 address that make one caller',
        },
        nat64: {
          kind: 'list',
          min: 1,
          of: { kind: 'text', like: 'a prefix such as "64:ff9b::/96"', words: 'a prefix of 96 bits' },
          words: 'prefixes under which NAT64 puts IPv4 addresses; such an address counts as the IPv4 address',
        },
      },
    },
    plans: {
      kind: 'object',
      required: ['names', 'default'],
      words: 'the plans clients can have',
      keys: {
        names: {
          kind: 'list',
          min: 1,
          of: { kind: 'text', like: 'the name of a plan', words: 'a plan' },
          words: 'all plans',
        },
        default: {
          kind: 'text',
          like: 'one of plans.names',
          words: 'the plan of clients without one, or with one that is not declared',
        },
      },
    },
    defaults: {
      kind: 'object',
      required: [],
      words: 'for all policies that do not say otherwise',
      keys: {
        onStoreFailure: storeFailure,
        expectedInstances: { ...expectedInstances, words: 'as storeFailure.expectedInstances' },
      },
    },
    storeFailure: {
      kind: 'object',
      required: [],
      words: 'how instances decide while the shared store does not answer',
      keys: {
        expectedInstances: {
          kind: 'either',
          of: [expectedInstances, { kind: 'choice', of: ['live'], words: 'as many as used the store lately' }],
          words:
            'instances that share a limit, each of which counts its part: a whole number from 1 to 100000, or live',
        },
        ceiling: {
          kind: 'object',
          required: ['limit', 'window'],
          words: 'what all instances together admit meanwhile, over all keys; without it there is no ceiling',
          keys: {
            limit: { kind: 'integer', unit: 'units', min: 1, max: 1e12, words: 'units per window' },
            window: { kind: 'duration', words: 'the window' },
          },
        },
      },
    },
    exempt: {
      kind: 'object',
      required: [],
      words: 'what is never counted',
      keys: {
        routes: {
          kind: 'list',
          min: 0,
          of: { kind: 'text', like: 'a method and a path such as "GET /health/**"', words: 'a route' },
          words: 'methods and paths',
        },
        addresses: {
          kind: 'list',
          min: 0,
          of: { kind: 'text', like: 'an address or a network such as "10.0.0.0/8"', words: 'an address or network' },
          words: 'addresses and networks',
        },
        clients: {
          kind: 'list',
          min: 0,
          of: { kind: 'text', like: clientLike, words: 'a client' },
          words: 'clients',
        },
      },
    },
    hashSecret: {
      kind: 'pattern',
      like: 'a text of 16 characters or more',
      pattern: '^[\\s\\S]{16,}$',
      secret: true,
      words: 'turns secrets that callers send into keys; the same on all instances; needed by per: api-key',
    },
    caseSensitive: { kind: 'flag', default: false, words: 'routes tell upper and lower case apart' },
    capacity: {
      kind: 'object',
      required: ['limit', 'window'],
      words: 'what the service can sustain; `check` compares the sum of all budgets with it',
      keys: {
        limit: { kind: 'integer', unit: 'units', min: 1, max: 1e12, words: 'units per window' },
        window: { kind: 'duration', words: 'the window' },
        clients: {
          kind: 'map',
          name: 'plan',
          min: 0,
          of: { kind: 'integer', unit: 'clients', min: 0, max: 1e9, words: 'clients of the plan' },
          words: 'how many clients each plan has',
        },
      },
    },
    checks: {
      kind: 'object',
      required: [],
      keys: checkSwitches,
      words: 'checks by code; one that is off says nothing',
    },
    policies: {
      kind: 'map',
      name: 'policy',
      min: 1,
      pattern: namePattern,
      of: policy,
      words: 'the policies by name',
    },
  },
}

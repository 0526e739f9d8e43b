import { documentShape } from './document-shape.ts'
import type { ObjectShape, Shape } from './shape.ts'

/** A JSON Schema as plain data. */
export type Schema = Readonly<Record<string, unknown>>

const durationPattern = '^(?!0+(\\.0+)?[a-z])\\d+(\\.\\d+)?(ms|s|m|h|d)$'

/** The JSON Schema (2020-12) of a policy document, written from the data that the checker reads. */
export function policySchema(): Schema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'catraca policy',
    ...schemaOf(documentShape),
  }
}

/** The JSON Schema of a shape. */
export function schemaOf(shape: Shape): Schema {
  const description = shape.words
  const fallback =
    'default' in shape && shape.default !== undefined && shape.default !== '' ? { default: shape.default } : {}
  const common = { ...(description !== '' && { description }), ...fallback }
  switch (shape.kind) {
    case 'integer':
      return { type: 'integer', minimum: shape.min, maximum: shape.max, ...common }
    case 'duration':
      return {
        anyOf: [
          { type: 'string', pattern: durationPattern },
          { type: 'number', exclusiveMinimum: 0 },
        ],
        ...common,
      }
    case 'choice':
      return { enum: shape.of, ...common }
    case 'text':
      return { type: 'string', minLength: 1, ...common }
    case 'pattern':
      return { type: 'string', pattern: shape.pattern, ...common }
    case 'flag':
      return { type: 'boolean', ...common }
    case 'list':
      return { type: 'array', minItems: shape.min, items: schemaOf(shape.of), ...common }
    case 'map': {
      const names = { minLength: 1, ...(shape.pattern !== undefined && { pattern: shape.pattern }) }
      return {
        type: 'object',
        minProperties: shape.min,
        propertyNames: names,
        additionalProperties: schemaOf(shape.of),
        ...common,
      }
    }
    case 'object':
      return objectSchema(shape, {})
    case 'variant': {
      const variants = Object.entries(shape.of).map(([name, one]) =>
        objectSchema(one, { [shape.key]: { const: name } }),
      )
      return { oneOf: variants, ...common }
    }
    default:
      return { anyOf: shape.of.map(schemaOf), ...common }
  }
}

function objectSchema({ keys, required, words }: ObjectShape, fixed: Record<string, Schema>): Schema {
  const own = Object.entries(keys)
  // A default that names another option is no value.
  const properties = Object.fromEntries(own.map(([name, shape]) => [name, withoutNamedDefault(schemaOf(shape), keys)]))
  return {
    type: 'object',
    additionalProperties: false,
    required: [...Object.keys(fixed), ...required],
    properties: { ...fixed, ...properties },
    description: words,
  }
}

function withoutNamedDefault(schema: Schema, keys: Readonly<Record<string, unknown>>): Schema {
  const { default: value, ...rest } = schema
  if (value === undefined) return schema
  return typeof value === 'string' && value in keys
    ? { ...rest, description: `${String(rest['description'])}; default: ${value}` }
    : schema
}

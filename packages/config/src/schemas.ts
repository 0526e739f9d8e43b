import { policySchema, type Schema, schemaOf } from 'catraca/policy'
import { gatewayShape } from './gateway-shape.ts'

/** The JSON Schemas that editors use, by file name in `schema/`. */
export function schemas(): Readonly<Record<string, Schema>> {
  const $schema = 'https://json-schema.org/draft/2020-12/schema'
  return {
    'policy.json': policySchema(),
    'gateway.json': { $schema, title: 'catraca gateway', ...schemaOf(gatewayShape) },
  }
}

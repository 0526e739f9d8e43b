import { createRequire } from 'node:module'
import { rateLimit as fetchLimit } from 'catraca/fetch'
import { adapterSuite } from 'catraca/testing'
import express from 'express'
import { afterAll, beforeAll, describe, test, vi } from 'vitest'
import { expressDriver } from './drivers/express.ts'
import { fastifyDriver } from './drivers/fastify.ts'
import { fetchDriver } from './drivers/fetch.ts'
import { honoDriver } from './drivers/hono.ts'
import { koaDriver } from './drivers/koa.ts'
import { nestDriver } from './drivers/nest.ts'
import { nodeDriver } from './drivers/node.ts'

const express4 = createRequire(import.meta.url)('express-4') as typeof express

// What fails on purpose would fill the screen: a settle is told as a warning, a broken stream by Hono's server.
beforeAll(() => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterAll(() => void vi.restoreAllMocks())

describe('node:http', () => adapterSuite(test, nodeDriver))
describe('Express 4', () => adapterSuite(test, expressDriver(express4)))
describe('Express 5', () => adapterSuite(test, expressDriver(express)))
describe('Fastify 5', () => adapterSuite(test, fastifyDriver))
describe('Hono on Node', () => adapterSuite(test, honoDriver('node')))
describe('Hono elsewhere', () => adapterSuite(test, honoDriver('elsewhere')))
describe('Koa', () => adapterSuite(test, koaDriver))
describe('NestJS', () => adapterSuite(test, nestDriver))
describe('fetch', () => adapterSuite(test, fetchDriver(fetchLimit)))

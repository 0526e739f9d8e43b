import { STATUS_CODES } from 'node:http'

/** Thrown by a handler to answer with a problem document. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {string} detail What is wrong, and what is allowed.
   * @param {Record<string, string>} [headers]
   */
  constructor(status, detail, headers = {}) {
    super(detail)
    this.status = status
    this.headers = headers
  }
}

/**
 * Answers with a whole text. Node leaves the body out when the question was HEAD.
 * @param {import('node:http').ServerResponse} response
 * @param {number} status
 * @param {string} type
 * @param {string} text
 * @param {Record<string, string>} [headers]
 */
export function send(response, status, type, text, headers = {}) {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text), ...headers })
  response.end(text)
}

/** @param {import('node:http').ServerResponse} response */
export function sendJson(response, status, body, headers) {
  send(response, status, 'application/json', `${JSON.stringify(body)}\n`, headers)
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {Refusal} refusal
 */
export function sendProblem(response, { status, message, headers }) {
  const body = { type: 'about:blank', title: STATUS_CODES[status], status, detail: message }
  send(response, status, 'application/problem+json', `${JSON.stringify(body)}\n`, headers)
}

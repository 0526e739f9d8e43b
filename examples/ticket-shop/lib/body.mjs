import { Refusal } from './answers.mjs'

/** A longer body is refused. */
export const bodyLimit = 64 * 1024
/** How much of a refused body is still read: a caller that is busy sending would not see the answer otherwise. */
const drainLimit = 1024 * 1024

/**
 * The body as an object.
 * @param {import('node:http').IncomingMessage} request
 * @returns {Promise<Record<string, unknown>>}
 */
export async function readObject(request) {
  const body = parse(await readBytes(request))
  if (body === null || typeof body !== 'object' || Array.isArray(body))
    throw new Refusal(422, 'The body is to be a JSON object.')
  return body
}

/** @param {Buffer} bytes */
function parse(bytes) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new Refusal(400, 'The body is not JSON.')
  }
}

/** @param {import('node:http').IncomingMessage} request */
async function readBytes(request) {
  const chunks = []
  let length = 0
  // Leaving the loop must not destroy the connection, on which the refusal is still to be sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += chunk.length
    if (length <= bodyLimit) chunks.push(chunk)
    else if (length > drainLimit) throw tooLarge({ Connection: 'close' })
  }
  if (length > bodyLimit) throw tooLarge()
  return Buffer.concat(chunks)
}

function tooLarge(headers) {
  return new Refusal(413, `A body may have ${bodyLimit} bytes.`, headers)
}

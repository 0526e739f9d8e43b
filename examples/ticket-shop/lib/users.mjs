import { scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(scrypt)

/** The demo's users; the README has their passwords. */
const users = new Map([
  ['ana', { salt: 'kmebygFPhGusueOKRDpfGg==', hash: 'rUcWYTdIF7aqYkkmsiSB/rEgMTV5hNDKMToPaDjlAuc=' }],
  ['bruno', { salt: '/mNdxn4WmQjYoosRosIguA==', hash: 'ttnCVBZorZ7itrqkSROq/FgzlBXtiE9G3NOsUCFyuUg=' }],
  ['carla', { salt: 'OIrUdW9+Vx46AptQHF5PxA==', hash: 'jMpWw4/e61O/dbOFEcWi7i8xgV4/V2ilwWbsKxHjoEg=' }],
])
/** Compared with when there is no such user, so that the time taken does not tell who is one. */
const nobody = { salt: 'AAAAAAAAAAAAAAAAAAAAAA==', hash: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' }

/**
 * True when the password is the user's.
 * @param {string} name
 * @param {string} password
 */
export async function verify(name, password) {
  const user = users.get(name)
  const { salt, hash } = user ?? nobody
  const expected = Buffer.from(hash, 'base64')
  const equal = timingSafeEqual(await derive(password, Buffer.from(salt, 'base64'), expected.length), expected)
  return equal && user !== undefined
}

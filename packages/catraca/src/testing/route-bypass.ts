/** Another spelling of a request that was used up in its plain one. */
export interface BypassVector {
  readonly name: string
  readonly method: string
  /** The request target, to be sent byte for byte. */
  readonly target: string
}

const login = (name: string, target: string): BypassVector => ({ name, method: 'POST', target })
const report = (name: string, target: string, method = 'GET'): BypassVector => ({ name, method, target })

/** Spellings of `POST /login` and `GET /reports/:id/export` that servers take for them, or that look as if they did. */
export const bypassVectors: readonly BypassVector[] = [
  login('upper case', '/LOGIN'),
  login('mixed case', '/LogIn'),
  login('slash at the end', '/login/'),
  login('slashes at the end', '/login//'),
  login('two slashes in front', '//login'),
  login('three slashes in front', '///login'),
  login('host without scheme', '//host/login'),
  login('host without scheme after a backslash', '/\\host/login'),
  login('encoded letter', '/%6cogin'),
  login('encoded letter in upper case', '/%4Cogin'),
  login('all letters encoded', '/%6c%6F%67%69%6E'),
  login('dot segment', '/./login'),
  login('dot segments', '/x/../login'),
  login('above the root', '/../login'),
  login('encoded dot', '/%2e/login'),
  login('encoded dots', '/x/%2e%2e/login'),
  login('half-encoded dots', '/x/.%2E/login'),
  login('dots around an encoded slash', '/x/..%2flogin'),
  login('dot segment at the end', '/login/.'),
  login('dot segments at the end', '/login/x/..'),
  login('absolute form', 'http://localhost/login'),
  login('absolute form in upper case', 'HTTP://LOCALHOST/LOGIN'),
  login('absolute form, query before the path', 'http://localhost?x/login'),
  login('query', '/login?x=1'),
  login('empty query', '/login?'),
  login('path in the query', '/login?x=/../y'),
  login('fragment', '/login#x'),
  login('query in the fragment', '/login#x?y'),
  login('backslash in front', '\\login'),
  login('backslash behind a slash', '/\\login'),
  login('backslash at the end', '/login\\'),
  login('dots around a backslash', '/x\\..\\login'),
  login('encoded slash in front', '/%2flogin'),
  login('encoded backslash in front', '/%5clogin'),
  login('encoded twice', '/%256cogin'),
  login('parameter behind a semicolon', '/login;x=1'),
  login('encoded semicolon', '/login%3bx=1'),
  login('NUL at the end', '/login%00'),
  login('blank at the end', '/login%20'),
  login('overlong slash', '/%c0%aflogin'),
  login('full-width letters', '/%ef%bd%8cogin'),
  login('percent without digits', '/%login'),
  report('HEAD', '/reports/a/export', 'HEAD'),
  report('another report', '/reports/b/export'),
  report('upper case around a parameter', '/REPORTS/A/EXPORT'),
  report('slash at the end behind a parameter', '/reports/a/export/'),
  report('encoded slash in a parameter', '/reports/a%2Fb/export'),
  report('encoded backslash in a parameter', '/reports/a%5Cb/export'),
  report('backslash in a parameter', '/reports/a\\b/export'),
  report('slashes around a parameter', '/reports//a//export'),
  report('no parameter', '/reports//export'),
  report('dot as a parameter', '/reports/./export'),
  report('dots as a parameter', '/reports/../export'),
  report('encoded dots as a parameter', '/reports/%2e%2e/export'),
  report('dots behind an encoded slash in a parameter', '/reports/a%2f..%2f../export'),
  report('encoded slash twice', '/reports/a%252fb/export'),
  report('fragment in a parameter', '/reports/a#b/export'),
  report('encoded question mark in a parameter', '/reports/a%3Fb/export'),
  report('semicolon in a parameter', '/reports/a;b/export'),
  report('HEAD in absolute form', 'http://localhost/reports/a/export', 'HEAD'),
]

/** An application under test. */
export interface BypassApp {
  /** Sends a request whose target is not touched on the way (no `fetch`, no `URL`), and gives the status of its answer. */
  send(method: string, target: string): Promise<number>
  /** Calls of the two handlers so far, both together. */
  reached(): number
  close(): Promise<void>
}

/**
 * Tests that no spelling of a route gets around its limit. `start` starts a fresh application that answers `POST /login` and
 * `GET /reports/:id/export` with handlers that count their calls; each of the two routes is limited to one request per
 * hour for each caller. A spelling may be refused, not be found, or fail: it must not reach a handler a second time.
 *
 * @param test Declares a test: `test` of vitest, `node:test`, jest.
 */
export function routeBypassSuite(
  test: (name: string, run: () => Promise<void>) => unknown,
  start: () => Promise<BypassApp>,
): void {
  for (const vector of bypassVectors) {
    test(`no way around the limit of a route: ${vector.name}: ${vector.method} ${vector.target}`, async () => {
      const app = await start()
      try {
        await tryBypass(app, vector)
      } finally {
        await app.close()
      }
    })
  }
}

async function tryBypass(app: BypassApp, { method, target }: BypassVector): Promise<void> {
  const [plainMethod, plainTarget] = method === 'POST' ? ['POST', '/login'] : ['GET', '/reports/a/export']
  const plain = `${plainMethod} ${plainTarget}`
  await app.send(plainMethod, plainTarget)
  if (app.reached() !== 1) throw new Error(`${plain} reached its handler ${app.reached()} times, not once`)
  await app.send(plainMethod, plainTarget)
  if (app.reached() !== 1) throw new Error(`${plain} is not limited: the second request reached its handler too`)
  const status = await app.send(method, target)
  if (app.reached() !== 1) {
    throw new Error(`${method} ${target} reached the handler past the limit of ${plain}; it was answered ${status}`)
  }
}

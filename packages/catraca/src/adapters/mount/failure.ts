import type { Answer } from '../../http/answers.ts'

/** Answer to a request for which a function of the application failed, where no framework has one. */
export const failure: Answer = {
  status: 500,
  fields: ['Cache-Control', 'no-store', 'Content-Type', 'application/problem+json'],
  body: '{"type":"about:blank","title":"Internal Server Error","status":500}\n',
}

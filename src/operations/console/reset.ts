/** "Reset everything" of the console: `POST /dev/reset` makes the server forget all that it holds and begin anew. */

import { SignalError } from '../../errors.ts'
import type { HttpRoute } from '../../transport/route.ts'
import { jsonAnswer } from '../page-route.ts'
import type { ResetRequest } from './events.ts'

export interface Reset {
  /** Why this server can't forget its log, a sentence; undefined where it can. */
  readonly refusal: string | undefined
  /** Resolves when it is sure to happen; the server stops then, and starts again by itself on the same ports. */
  readonly begin: () => Promise<void>
}

/** Refuses with `VALIDATION_FAILED` without the words of confirmation, and where the log's keys are not the server's own. */
export function resetRoute({ refusal, begin }: Reset): HttpRoute {
  return {
    method: 'POST',
    path: '/dev/reset',
    async handle({ body }) {
      if (refusal !== undefined) throw new SignalError('VALIDATION_FAILED', refusal)
      if (!isConfirmed(body)) {
        throw new SignalError('VALIDATION_FAILED', 'this deletes everything: confirm it', {
          errors: [{ pointer: '/confirm', code: 'invalid', detail: `send "${CONFIRMATION}"` }],
        })
      }
      await begin()
      return jsonAnswer(202, '{}')
    },
  }
}

function isConfirmed(body: Uint8Array): boolean {
  try {
    const said: Partial<ResetRequest> | null = JSON.parse(Buffer.from(body).toString('utf8'))
    return said?.confirm === CONFIRMATION
  } catch {
    return false
  }
}

const CONFIRMATION: ResetRequest['confirm'] = 'reset everything'

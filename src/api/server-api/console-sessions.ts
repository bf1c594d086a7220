/** Sessions of the operators' page: a moderator's key is traded for a token, so that the page need not keep the key. */

import { CONSOLE_SESSION_MS, formatConsoleToken } from '../../domain/operators/console-session.ts'
import { SignalError } from '../../errors.ts'
import { ConsoleSession } from '../../schema/audit.ts'
import { timeText } from '../../schema/time.ts'
import { type ServerOperation, serverOperation } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<ServerApiDeps, 'secrets'>

const startConsoleSession = serverOperation({
  id: 'startConsoleSession',
  method: 'POST',
  path: '/server/api/v1/console-sessions',
  tag: 'moderation',
  summary: 'Trade a moderator’s key for a session of 15 minutes, as the operators’ page does',
  scope: 'console',
  replies: { 201: ConsoleSession },
  codes: [],
  handle({ secrets }: Deps, { holder: { keyId, person, scopes, isConsoleSession }, nowMs, commit }) {
    // A session that could renew itself would have no end.
    if (isConsoleSession) throw new SignalError('SERVER_KEY_INVALID', 'a session takes the key itself')
    const expiresAtMs = Math.floor((nowMs + CONSOLE_SESSION_MS) / 1000) * 1000
    const token = formatConsoleToken(secrets.consoleSession, { keyId, expiresAtMs })
    const body = { token, expiresAt: timeText(expiresAtMs), person, scopes: [...scopes] }
    return commit(() => ({ status: 201, body, target: `key:${keyId}` }))
  },
})

export const CONSOLE_SESSIONS: readonly ServerOperation<Deps>[] = [startConsoleSession]

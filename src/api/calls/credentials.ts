/** `GET /credentials` (contract 5.2): how a device reaches the TURN relay, with credentials made for its user. */

import { turnCredentials } from '../../domain/calls/turn.ts'
import { SignalError } from '../../errors.ts'
import { RelayCredentials } from '../../schema/credentials.ts'
import { timeText } from '../../schema/time.ts'
import type { ApiDeps } from '../deps.ts'
import { type RateRule, read } from '../table/operation.ts'

const CREDENTIALS_RATE: RateRule = { name: 'credentials', by: 'user' }

export const getCredentials = read({
  id: 'getCredentials',
  method: 'GET',
  path: '/credentials',
  // `/api/credentials` is this one's alias.
  aliases: ['/app/api/credentials'],
  tag: 'calls',
  summary: 'Credentials for the TURN relay',
  access: 'session',
  replies: { 200: RelayCredentials },
  codes: ['TURN_NOT_CONFIGURED'],
  rates: [CREDENTIALS_RATE],
  handle: ({ relay }: Pick<ApiDeps, 'relay'>, { requester, nowMs }) => {
    if (relay === undefined) throw notConfigured()
    const { username, password, expiresAtMs } = turnCredentials(relay, requester.userId, nowMs)
    const { tlsUrl, noneTlsUrl, uris, stunUrl } = relay.addresses
    return {
      status: 200,
      body: {
        turnUsername: username,
        turnPassword: password,
        tlsUrl,
        noneTlsUrl,
        ttl: relay.lifetimeS,
        expiresAt: timeText(expiresAtMs),
        uris,
        stunUrl,
      },
    }
  },
})

function notConfigured(): SignalError {
  const members = { retryIn: NOT_CONFIGURED_RETRY_S }
  return new SignalError('TURN_NOT_CONFIGURED', 'this server has no relay', { members })
}

/** Nothing but a restart with other settings changes it. */
const NOT_CONFIGURED_RETRY_S = 3_600

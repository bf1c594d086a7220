/** Admits requests as a test says. */

import { rateLimited } from '../../src/api/table/request-rates.ts'
import type { Quota } from '../../src/errors.ts'
import type { RequestAdmission } from '../../src/transport/route.ts'

/** The only good token. */
export const GOOD_TOKEN = 'Bearer good'

/** `waitSeconds` says for which network and what the request is, and returns 0 where it is admitted. */
export function fakeAdmission(
  waitSeconds: (network: string, what: string, authorization: string) => number,
  quota: Quota = { count: 60, perMs: 60_000 },
): RequestAdmission {
  const judge = (network: string, what: string, authorization = '') => {
    const seconds = waitSeconds(network, what, authorization)
    return seconds === 0 ? undefined : rateLimited(1_000 * seconds, 'address', quota)
  }
  const assertAdmitted = (...asked: Parameters<typeof judge>) => {
    const refusal = judge(...asked)
    if (refusal !== undefined) throw refusal
  }
  return {
    admit: assertAdmitted,
    isGood: authorization => authorization === GOOD_TOKEN,
    admitRefresh: (network, body) => assertAdmitted(network, `refresh ${Buffer.from(body)}`),
    admitSocket: network => judge(network, 'socket'),
    onTokenRefused: (network, authorization) => assertAdmitted(network, 'refused', authorization),
  }
}

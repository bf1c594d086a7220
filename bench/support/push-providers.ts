/** Program: APNs and FCM as stand-ins that take every push, and count what has come. */

import { startApnsStandIn } from '../../test/support/apns-stand-in.ts'
import { startFcmStandIn } from '../../test/support/fcm-stand-in.ts'
import { serveParent } from './program.ts'

export interface PushProvidersProtocol {
  readonly setup: object
  /** The settings of a server that uses them, or how many pushes each has taken so far. */
  readonly request: 'environment' | 'taken'
  readonly answer: Readonly<Record<string, string>>
}

serveParent<PushProvidersProtocol>(async () => {
  const [apns, fcm] = await Promise.all([startApnsStandIn(), startFcmStandIn()])
  const environment = {
    CALLSIGN_APNS_KEY: apns.key,
    CALLSIGN_APNS_KEY_ID: apns.keyId,
    CALLSIGN_APNS_TEAM_ID: apns.teamId,
    CALLSIGN_APNS_HOST: 'localhost',
    CALLSIGN_APNS_PORT: String(apns.port),
    CALLSIGN_APNS_CA: apns.caFile,
    CALLSIGN_FCM_SERVICE_ACCOUNT: JSON.stringify(fcm.serviceAccount),
    CALLSIGN_FCM_URL: fcm.url,
  }
  return request =>
    request === 'environment'
      ? environment
      : { apns: String(apns.pushes.length), fcm: String(fcm.messages.length) }
})

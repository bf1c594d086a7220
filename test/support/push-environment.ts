/** The settings by which a server pushes through the stand-ins for APNs and FCM. */

import type { ApnsStandIn } from './apns-stand-in.ts'
import type { FcmStandIn } from './fcm-stand-in.ts'

export function pushEnvironment(apns: ApnsStandIn, fcm: FcmStandIn): Readonly<Record<string, string>> {
  return {
    CALLSIGN_APNS_KEY: apns.key,
    CALLSIGN_APNS_KEY_ID: apns.keyId,
    CALLSIGN_APNS_TEAM_ID: apns.teamId,
    CALLSIGN_APNS_HOST: 'localhost',
    CALLSIGN_APNS_PORT: String(apns.port),
    CALLSIGN_APNS_CA: apns.caFile,
    CALLSIGN_FCM_SERVICE_ACCOUNT: JSON.stringify(fcm.serviceAccount),
    CALLSIGN_FCM_URL: fcm.url,
  }
}

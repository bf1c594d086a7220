/**
 * Everything that a server in production speaks to, each as a stand-in in the test process, and the environment that
 * joins a server to it: SMTP, an SMS gateway, an identity provider, Sign in with Apple, APNs, FCM.
 */

import { randomBytes } from 'node:crypto'
import { parseEnv } from 'node:util'
import type { Test } from 'tap'
import { formatKeys, generateKeys } from '../../src/log/keys.ts'
import { type ApnsStandIn, startApnsStandIn } from './apns-stand-in.ts'
import { AppleStandIn } from './apple-stand-in.ts'
import { type FcmStandIn, startFcmStandIn } from './fcm-stand-in.ts'
import { OidcProvider } from './oidc-provider.ts'
import { pushEnvironment } from './push-environment.ts'
import { type SmsGateway, startSmsGateway } from './sms-gateway.ts'
import { type SmtpSink, startSmtpSink } from './smtp-sink.ts'

/** Our app's ids at the provider, at Apple's sign-in and at APNs. */
export const GOOGLE_APP = 'callsign.google'
export const APPLE_APP = 'org.example.callsign'

export interface OutsideWorld {
  readonly mail: SmtpSink
  readonly sms: SmsGateway
  readonly google: OidcProvider
  readonly apple: AppleStandIn
  readonly apns: ApnsStandIn
  readonly fcm: FcmStandIn
  /** Settings by which a server uses all of them. */
  readonly environment: Readonly<Record<string, string>>
}

/** Ends with the test. */
export async function startOutsideWorld(t: Test): Promise<OutsideWorld> {
  const [mail, sms, google, apple, apns, fcm] = await Promise.all([
    startSmtpSink({ security: 'starttls', login: { user: 'callsign', password: 'smtp-password' } }),
    startSmsGateway(),
    OidcProvider.start({ algorithm: 'RS256' }),
    AppleStandIn.start({ algorithm: 'ES256' }),
    startApnsStandIn(),
    startFcmStandIn(),
  ])
  t.teardown(() =>
    Promise.all([mail.close(), sms.close(), google.stop(), apple.stop(), apns.close(), fcm.close()]),
  )
  const stands = { mail, sms, google, apple, apns, fcm }
  return { ...stands, environment: environmentOf(stands) }
}

function environmentOf({
  mail,
  sms,
  google,
  apple,
  apns,
  fcm,
}: Omit<OutsideWorld, 'environment'>): Record<string, string> {
  return {
    CALLSIGN_SMTP_URL: mail.url,
    CALLSIGN_SMTP_CA: mail.caFile,
    CALLSIGN_MAIL_FROM: 'Callsign <no-reply@example.org>',
    CALLSIGN_SMS_URL: sms.url,
    CALLSIGN_SMS_HEADERS: '{"x-api-key":"sms-key"}',
    CALLSIGN_OIDC_PROVIDERS: JSON.stringify([
      { name: 'google', issuer: google.issuer, clientIds: [GOOGLE_APP] },
    ]),
    CALLSIGN_APPLE_CLIENT_IDS: APPLE_APP,
    CALLSIGN_APPLE_TEAM_ID: apple.teamId,
    CALLSIGN_APPLE_KEY_ID: apple.keyId,
    // As it looks in a file for `--env-file`.
    CALLSIGN_APPLE_PRIVATE_KEY: apple.privateKey.replaceAll('\n', '\\n'),
    CALLSIGN_APPLE_ISSUER: apple.provider.issuer,
    ...pushEnvironment(apns, fcm),
  }
}

/** A production server's settings, with fresh keys as `keygen` prints them. */
export function productionEnvironment(): Readonly<Record<string, string>> {
  const text = formatKeys(generateKeys('kt.example.org/log', randomBytes))
  const { KT_PUBLIC_KEY, VRF_PUBLIC_KEY, KT_INDEX_PUBLIC_KEY, ...keys } = parseEnv(text) as Record<
    string,
    string
  >
  return { ...keys, CALLSIGN_HTTP_HOST: '127.0.0.1', CALLSIGN_PUBLIC_URL: 'https://call.example.org' }
}

/**
 * Push: a message to a made-up device token. Apple and Google refuse the token only after accepting our credentials,
 * so that refusal is the proof. A real token gets a real message.
 */

import { randomUUID } from 'node:crypto'
import { type ApnsOptions, ApnsSender } from '../../src/delivery/apns.ts'
import { FcmSender } from '../../src/delivery/fcm.ts'
import type { ApnsEnvironment, DeliveryOutcome } from '../../src/delivery/outcome.ts'
import { vapidPublicKey } from '../../src/delivery/vapid-key.ts'
import { type Check, type Finding, fails, off, ok, type Patient } from './finding.ts'
import { ask } from './http.ts'

export const checkApns: Check = async patient => {
  const { apns } = patient.config.application
  if (apns === undefined)
    return [off('apns', 'set CALLSIGN_APNS_KEY, CALLSIGN_APNS_KEY_ID and CALLSIGN_APNS_TEAM_ID')]
  const environments = ['production', 'development'] as const
  const found = await Promise.all(
    environments.map(environment => checkEnvironment(patient, apns, environment)),
  )
  const [production, development] = found
  // One key may be for one of the two only; that has to be the one that the apps on sale use.
  if (production?.state === 'ok' && development?.state === 'fails') {
    return [
      production,
      {
        ...development,
        state: 'off',
        detail: `${development.detail}; apps from the shop need production only`,
      },
    ]
  }
  return found
}

async function checkEnvironment(
  { pushToken, bundleId, config }: Patient,
  apns: ApnsOptions,
  environment: ApnsEnvironment,
): Promise<Finding> {
  const check = `apns ${environment}`
  const host = apns.hosts?.[environment] ?? APPLE_HOSTS[environment]
  // Both names lead to one host: no token is tried in the other environment.
  const sender = new ApnsSender({ ...apns, hosts: { production: host, development: host } })
  const { appleAppIds, apple, appName } = config.application
  const topic = bundleId ?? appleAppIds[0]?.slice(TEAM_CHARS + 1) ?? apple?.clientIds[0] ?? 'callsign.doctor'
  const isReal = pushToken !== undefined && APNS_TOKEN_FORM.test(pushToken)
  try {
    const outcome = await sender.send({
      token: isReal ? pushToken : NOBODYS_TOKEN,
      environment,
      topic,
      pushType: 'alert',
      priority: 10,
      expiresAtMs: Date.now() + 60_000,
      id: randomUUID(),
      payload: { aps: { alert: `${appName} can send pushes` } },
    })
    return judgeApns(check, host, outcome, isReal)
  } finally {
    sender.close()
  }
}

function judgeApns(check: string, host: string, outcome: DeliveryOutcome, isReal: boolean): Finding {
  if (outcome.kind === 'sent') return ok(check, `${host} took the push; look whether it came`)
  const { reason } = outcome
  if (outcome.kind === 'token-gone' || outcome.kind === 'token-unknown') {
    if (!isReal) return ok(check, `${host} takes our key; --push-token TOKEN sends one`)
    return fails(
      check,
      `${host} takes our key but knows no such device (${reason}): a token is of one environment and one app`,
    )
  }
  if (ABOUT_TOPIC.has(reason)) {
    return isReal
      ? fails(check, `${host} takes our key but not the app (${reason}): name it by --bundle-id`)
      : ok(check, `${host} takes our key; for which apps was not tried (--bundle-id ID)`)
  }
  if (reason === 'network' || reason === 'timeout') {
    return fails(
      check,
      `${host} can't be reached (${reason}): is outgoing TCP open, and its certificate trusted?`,
    )
  }
  if (reason === 'ExpiredProviderToken')
    return fails(check, `${host}: ${reason}: this machine's clock is wrong`)
  return fails(
    check,
    `${host} refuses our key (${reason}): CALLSIGN_APNS_KEY, _KEY_ID and _TEAM_ID must be of one key, and that for this environment`,
  )
}

export const checkFcm: Check = async patient => {
  const { fcm, appName } = patient.config.application
  if (fcm === undefined)
    return [off('fcm', 'set CALLSIGN_FCM_SERVICE_ACCOUNT_FILE to the JSON of the service account')]
  const { pushToken } = patient
  const isReal = pushToken !== undefined && !APNS_TOKEN_FORM.test(pushToken)
  // Only for the time that its answer has.
  const { origin } = new URL(fcm.serviceAccount.token_uri ?? GOOGLE_TOKEN_URI)
  await ask(patient, origin, { method: 'HEAD' }).catch(() => undefined)
  const outcome = await new FcmSender({ ...fcm, isDryRun: !isReal }).send({
    token: isReal ? pushToken : 'nobody',
    priority: 'high',
    ttlSeconds: 60,
    notification: { title: appName, body: `${appName} can send pushes` },
    data: {},
  })
  return [judgeFcm(fcm.serviceAccount.project_id, outcome, isReal)]
}

/** No push service says more without a browser's subscription. */
export const checkWebPush: Check = async ({ config }) => {
  const { vapidKey } = config.application
  if (vapidKey === undefined)
    return [off('web push', 'set CALLSIGN_VAPID_KEY_FILE to the key that keygen --vapid prints')]
  return [ok('web push', `browsers subscribe with ${vapidPublicKey(vapidKey)}`)]
}

function judgeFcm(project: string, outcome: DeliveryOutcome, isReal: boolean): Finding {
  if (outcome.kind === 'sent' && isReal)
    return ok('fcm', `project ${project} took the push; look whether it came`)
  if (outcome.kind === 'sent' || (outcome.kind === 'token-gone' && !isReal)) {
    return ok('fcm', `project ${project} takes our account; --push-token TOKEN sends one`)
  }
  const { reason } = outcome
  if (outcome.kind === 'token-gone')
    return fails(
      'fcm',
      `project ${project} knows no such device (${reason}): is the token of this project's app?`,
    )
  if (reason === 'network' || reason === 'timeout')
    return fails('fcm', `Google can't be reached (${reason}): is outgoing HTTPS open?`)
  if (reason === 'invalid_grant')
    return fails('fcm', 'Google does not take the account: is its key still listed, and the clock right?')
  return fails(
    'fcm',
    `project ${project} refuses us (${reason}): is the FCM API enabled, and may the account send?`,
  )
}

const APPLE_HOSTS = { production: 'api.push.apple.com', development: 'api.sandbox.push.apple.com' } as const
const GOOGLE_TOKEN_URI = 'https://oauth2.googleapis.com/token'
const APNS_TOKEN_FORM = /^[0-9a-f]{64,200}$/i
const NOBODYS_TOKEN = '0'.repeat(64)
const ABOUT_TOPIC = new Set(['BadTopic', 'DeviceTokenNotForTopic', 'MissingTopic', 'TopicDisallowed'])
const TEAM_CHARS = 10

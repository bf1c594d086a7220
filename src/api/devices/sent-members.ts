/** Members that a device sends about itself, as the domain takes them. */

import type { Static, TObject } from 'typebox'
import type { SentPushTokens } from '../../domain/devices/device.ts'
import { isPushEndpoint, type WebPushSubscription } from '../../domain/devices/web-push.ts'
import { SignalError } from '../../errors.ts'
import { isP256Point } from '../../log/p256.ts'
import { invalidMember } from '../../schema/check.ts'
import { PutPushRequest } from '../../schema/device.ts'

type SentSubscription = NonNullable<Static<typeof PutPushRequest>['webPush']>

/** The members that the schema names: bodies keep unknown ones too. */
export function known<Schema extends TObject>({ properties }: Schema, body: Static<Schema>): Static<Schema> {
  const named = Object.entries(body).filter(([name]) => Object.hasOwn(properties, name))
  return Object.fromEntries(named) as Static<Schema>
}

/**
 * The push tokens at `pointer` in a body. Throws `PUSH_ENDPOINT_REFUSED` for a subscription at a host that is not in
 * the list, and `VALIDATION_FAILED` for one without usable keys.
 */
export function pushTokensIn(
  sent: Static<typeof PutPushRequest>,
  webPushHosts: readonly string[],
  pointer = '',
): SentPushTokens {
  const { webPush, ...tokens } = known(PutPushRequest, sent)
  if (webPush === undefined) return tokens
  return { ...tokens, webPush: subscriptionOf(webPush, webPushHosts, `${pointer}/webPush/keys`) }
}

function subscriptionOf(
  { endpoint, keys }: SentSubscription,
  webPushHosts: readonly string[],
  pointer: string,
): WebPushSubscription {
  if (endpoint === '') return NONE
  if (!isPushEndpoint(endpoint, webPushHosts))
    throw new SignalError(
      'PUSH_ENDPOINT_REFUSED',
      'the endpoint is not at a push service that this server knows',
    )
  if (keys === undefined) throw invalidMember(pointer, 'REQUIRED', 'is missing')
  const { p256dh, auth } = keys
  if (!isP256Point(Buffer.from(p256dh, 'base64url')))
    throw invalidMember(`${pointer}/p256dh`, 'FORMAT', 'is not a point on P-256')
  return { endpoint, keys: { p256dh, auth } }
}

/** Takes a subscription back. */
const NONE: WebPushSubscription = { endpoint: '', keys: { p256dh: '', auth: '' } }

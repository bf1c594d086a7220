/** Program: APNs and FCM as stand-ins that take every push, and say when so many have come. */

import { startApnsStandIn } from '../../test/support/apns-stand-in.ts'
import { startFcmStandIn } from '../../test/support/fcm-stand-in.ts'
import { pushEnvironment } from '../../test/support/push-environment.ts'
import type { PushProvider } from './people.ts'
import { serveParent } from './program.ts'

export interface PushProvidersProtocol {
  readonly setup: object
  readonly request: /** The settings of a server that uses them. */
    | { readonly kind: 'environment' }
    /** How many pushes the provider has taken since the start, once there are so many. */
    | { readonly kind: 'taken'; readonly provider: PushProvider; readonly countMin: number }
  readonly answer: Readonly<Record<string, string>>
}

serveParent<PushProvidersProtocol>(async () => {
  const [apns, fcm] = await Promise.all([startApnsStandIn(), startFcmStandIn()])
  const taken = async (provider: PushProvider, countMin: number): Promise<number> => {
    if (provider === 'apns') {
      await apns.received(countMin)
      return apns.pushes.length
    }
    // It counts what buys a token, too.
    while (fcm.messages.length < countMin) await fcm.received(countMin + fcm.assertions.length)
    return fcm.messages.length
  }
  return async request =>
    request.kind === 'environment'
      ? pushEnvironment(apns, fcm)
      : { taken: String(await taken(request.provider, request.countMin)) }
})

/**
 * `@callsign/sdk/app/web-push`: has a browser ring while no page of the app is open. The browser asks the person first;
 * a service worker with `@callsign/sdk/app/service-worker` shows the pushes.
 */

import { Recent } from '../../recent.ts'
import type { Call } from '../calls/call.ts'
import type { Callsign } from '../callsign.ts'
import { hasCode } from '../callsign-error.ts'
import type { WorkerMessage } from './service-worker.ts'

/**
 * - `on`: pushes come to this browser
 * - `off`: it has no subscription
 * - `refused`: the person does not allow notifications, or has not decided
 * - `unsupported`: by this browser, or by the server, which has no key for it
 */
export type WebPushState = 'on' | 'off' | 'refused' | 'unsupported'

/**
 * Asks the person, where they have not been asked, and subscribes. Browsers let them be asked at a click alone, so nothing
 * may be awaited between the click and this.
 */
export async function subscribeToWebPush(
  me: Callsign,
  registration: ServiceWorkerRegistration,
): Promise<WebPushState> {
  if (!isSupported(registration)) return 'unsupported'
  if ((await Notification.requestPermission()) !== 'granted') return 'refused'
  return subscribe(me, registration, await registration.pushManager.getSubscription())
}

/** Call it at each start of the page, once the user is signed in: browsers change subscriptions, and servers their key. */
export async function renewWebPush(
  me: Callsign,
  registration: ServiceWorkerRegistration,
): Promise<WebPushState> {
  if (!isSupported(registration)) return 'unsupported'
  const known = await registration.pushManager.getSubscription()
  if (known === null) return 'off'
  return Notification.permission === 'granted' ? subscribe(me, registration, known) : 'refused'
}

/** Call it before the user signs out, too: pushes are for the user who switched them on. */
export async function unsubscribeFromWebPush(
  me: Callsign,
  registration: ServiceWorkerRegistration,
): Promise<WebPushState> {
  if (!isSupported(registration)) return 'unsupported'
  const known = await registration.pushManager.getSubscription()
  await known?.unsubscribe()
  await me.request('PUT devices/current/push', { webPush: { endpoint: '' } }).catch(error => {
    if (!hasCode(error, 'SIGNED_OUT')) throw error
  })
  return 'off'
}

async function subscribe(
  me: Callsign,
  registration: ServiceWorkerRegistration,
  known: PushSubscription | null,
): Promise<WebPushState> {
  const { webPush } = await me.request('GET meta', undefined)
  if (webPush === undefined) return 'unsupported'
  const key = octetsOf(webPush.publicKey)
  const isOfKey = known !== null && isSame(known.options.applicationServerKey, key)
  if (!isOfKey) await known?.unsubscribe()
  const subscription = isOfKey
    ? known
    : await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
  const { endpoint = '', keys: { p256dh = '', auth = '' } = {} } = subscription.toJSON()
  await me.request('PUT devices/current/push', { webPush: { endpoint, keys: { p256dh, auth } } })
  if (!watched.has(me)) watch(me, registration)
  return 'on'
}

/**
 * What the worker shows of a ring goes when the ring does: the server says nothing of that to a browser with a connection.
 * A push may also come later than the answer.
 */
function watch(me: Callsign, registration: ServiceWorkerRegistration): void {
  watched.add(me)
  let ringing = new Set<string>()
  const over = new Recent<string, true>(OVER_MAX)
  const isRinging = ({ isIncoming, state }: Call) => isIncoming && state === 'ringing'
  me.on('changed', () => {
    const now = new Set(me.calls.filter(isRinging).map(({ callId }) => callId))
    for (const callId of ringing) {
      if (now.has(callId)) continue
      over.set(callId, true)
      void stopShowing(registration, callId)
    }
    ringing = now
  })
  navigator.serviceWorker.addEventListener('message', ({ data }: MessageEvent<WorkerMessage | null>) => {
    if (data?.kind === 'callsign-shown' && over.has(data.callId)) void stopShowing(registration, data.callId)
    if (data?.kind !== 'callsign-decline') return
    const call = me.calls.find(call => call.callId === data.callId && isRinging(call))
    // Another device may have been faster.
    call?.decline().catch(() => {})
  })
}

/** A missed call, which has the same tag, stays. */
async function stopShowing(registration: ServiceWorkerRegistration, callId: string): Promise<void> {
  for (const shown of await registration.getNotifications({ tag: callId }))
    if (shown.data?.type === 'call_invitation') shown.close()
}

function isSupported(registration: ServiceWorkerRegistration): boolean {
  return 'pushManager' in registration && 'Notification' in globalThis
}

function octetsOf(base64url: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64url.replace(/-/g, '+').replace(/_/g, '/')), one => one.charCodeAt(0))
}

function isSame(one: ArrayBuffer | null, other: Uint8Array): boolean {
  const octets = new Uint8Array(one ?? new ArrayBuffer())
  return octets.length === other.length && octets.every((octet, at) => octet === other[at])
}

/** One set of listeners for each. */
const watched = new WeakSet<Callsign>()
const OVER_MAX = 64

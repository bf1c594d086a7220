/** Settings of push to browsers. */

import { createHmac } from 'node:crypto'
import { generateVapidKey, vapidPublicKey } from '../../delivery/vapid-key.ts'
import { isWebPushHost, USUAL_WEB_PUSH_HOSTS } from '../../domain/devices/web-push.ts'
import type { EnvironmentReader } from './environment.ts'

export interface WebPushConfig {
  /** Undefined where browsers are not pushed to. */
  readonly vapidKey?: string | undefined
  /** Where push services reach the operator; undefined for the server's own address. */
  readonly vapidContact?: string | undefined
  /** Those that a browser's push service may be at. */
  readonly webPushHosts: readonly string[]
}

export function readWebPushSettings(reader: EnvironmentReader): WebPushConfig {
  const vapidKey = reader.secret('CALLSIGN_VAPID_KEY', 'key from keygen')
  if (vapidKey !== undefined && vapidPublicKey(vapidKey) === undefined)
    reader.problems.push('CALLSIGN_VAPID_KEY is not a key that keygen makes')
  const vapidContact = reader.formed(
    'CALLSIGN_VAPID_CONTACT',
    isContact,
    'a mailto or https address such as mailto:push@example.org',
    'the public address',
  )
  const more = reader.list(
    'CALLSIGN_WEB_PUSH_HOSTS',
    isWebPushHost,
    'names of hosts such as *.push.example.org',
  )
  return { vapidKey, vapidContact, webPushHosts: [...USUAL_WEB_PUSH_HOSTS, ...more] }
}

/** A development server has a key without a setting: the same for as long as its log has the same keys. */
export function vapidKeyOf(
  { vapidKey }: Pick<WebPushConfig, 'vapidKey'>,
  isDevelopment: boolean,
  secret: Uint8Array,
): string | undefined {
  if (vapidKey !== undefined || !isDevelopment) return vapidKey
  let tries = 0
  return generateVapidKey(() => createHmac('sha256', secret).update(`development vapid ${tries++}`).digest())
}

/** Push services refuse a contact that leads to no one, as a development server's own address does. */
export function vapidContactOf(
  { vapidContact }: Pick<WebPushConfig, 'vapidContact'>,
  publicUrl: string | undefined,
): string {
  return (
    vapidContact ??
    (publicUrl !== undefined && isContact(publicUrl) ? publicUrl : 'mailto:nobody@example.org')
  )
}

function isContact(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, pathname } = new URL(text)
  if (protocol === 'mailto:') return /^[^@\s]+@[^@\s]+$/.test(pathname)
  return protocol === 'https:' && hostname !== 'localhost'
}

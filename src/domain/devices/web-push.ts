/**
 * Where pushes to a browser go (contract 0.1, "2.5 Web push"; RFC 8030). The browser names the address, and this server
 * sends requests to it: so only addresses of known push services are taken.
 */

/** A `PushSubscription` of the Push API, with the members that a sender needs. */
export interface WebPushSubscription {
  readonly endpoint: string
  readonly keys: {
    /** Base64url of the browser's P-256 point. */
    readonly p256dh: string
    /** Base64url of 16 octets. */
    readonly auth: string
  }
}

/** Where Chrome and the browsers built on it, Firefox, Safari and Edge have theirs. */
export const USUAL_WEB_PUSH_HOSTS: readonly string[] = [
  'fcm.googleapis.com',
  'updates.push.services.mozilla.com',
  '*.push.apple.com',
  '*.notify.windows.com',
]

/** Whether the address is of one of the hosts: by HTTPS, on its port, by name. */
export function isPushEndpoint(endpoint: string, hosts: readonly string[]): boolean {
  if (!ENDPOINT_FORM.test(endpoint) || !URL.canParse(endpoint)) return false
  const { protocol, port, username, password, hostname } = new URL(endpoint)
  const isPlain = port === '' && username === '' && password === ''
  return protocol === 'https:' && isPlain && hosts.some(host => isHostOf(hostname, host))
}

/** Whether it can be in a list of hosts: a name, or `*.` and a name. An address is neither. */
export function isWebPushHost(text: string): boolean {
  return text.length <= 253 && HOST_FORM.test(text)
}

function isHostOf(hostname: string, host: string): boolean {
  return host.startsWith('*.') ? hostname.endsWith(host.slice(1)) : hostname === host
}

/** Other characters, such as a backslash, are read differently by different programs. */
const ENDPOINT_FORM = /^https:\/\/[A-Za-z0-9][!-[\]-~]+$/
/** The last label is no number, as it would be in an address. */
const HOST_FORM = /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Where a sign-in came from, as the account's owner is shown it: the program and the network, neither in full. */

/**
 * A `User-Agent` for a screen, a mail or a push. The client chooses this text, and it reaches the owner in the
 * app's name: no control characters, and nothing that a mail program makes a link of.
 */
export function shownAgent(userAgent: string): string {
  return userAgent
    .replace(/[^\x20-\x7e]|["<>:]/g, '')
    .replace(/\.(?=[a-z])/gi, ' ')
    .slice(0, AGENT_CHARS_MAX)
    .trim()
}

/**
 * The prefix of a request's `network`, such as `203.0.113.0/24` or `2001:db8:7::/48`; undefined where the network is
 * unknown. It says the place roughly, and no line of its own.
 */
export function networkPrefix(network: string): string | undefined {
  const bytes = Buffer.from(network, 'latin1')
  if (bytes.length === IPV4_BYTES) return `${bytes.subarray(0, 3).join('.')}.0/24`
  if (bytes.length !== IPV6_NETWORK_BYTES) return undefined
  const groups = [0, 2, 4].map(at => bytes.readUInt16BE(at).toString(16))
  while (groups.at(-1) === '0') groups.pop()
  return `${groups.join(':')}::/48`
}

const AGENT_CHARS_MAX = 80
const IPV4_BYTES = 4
const IPV6_NETWORK_BYTES = 8

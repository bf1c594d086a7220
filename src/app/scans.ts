/** Reads a text that was scanned, opened or pasted: a contact's link, or a user by id. `test/vectors/contact-scans.json` has examples. */

/** The token of a contact's link, and its fragment, which no server has seen; empty without one. */
export interface ContactLink {
  readonly kind: 'link'
  readonly token: string
  readonly fragment: string
}

/** A link counts before an id. Undefined for any other text, and for one of more than 4,096 characters. */
export function readScan(
  text: string,
): ContactLink | { readonly kind: 'user'; readonly userId: string } | undefined {
  const link = readContactLink(text)
  if (link !== undefined || text.length > TEXT_LENGTH_MAX) return link
  // No other white space, nor other digits: all platforms agree about these.
  const [, userId] = /^[\t-\r ]*(0|[1-9]\d{0,19})[\t-\r ]*$/.exec(text) ?? []
  return userId !== undefined && BigInt(userId) <= UINT64_MAX ? { kind: 'user', userId } : undefined
}

/** The first link in a text, of any form, or the token by itself. */
export function readContactLink(text: string): ContactLink | undefined {
  if (text.length > TEXT_LENGTH_MAX) return undefined
  for (const word of text.split(/[\t-\r ]/)) {
    const [token] = /c_[\w-]{22}(?![\w-])/.exec(word) ?? []
    if (token === undefined) continue
    const at = word.indexOf('#')
    return { kind: 'link', token, fragment: at < 0 ? '' : word.slice(at) }
  }
  return undefined
}

const TEXT_LENGTH_MAX = 4_096
const UINT64_MAX = 2n ** 64n - 1n

/**
 * Email addresses as login identifiers (contract 2.1): the grammar of HTML's email input (WHATWG), with the domain
 * taken through UTS 46.
 *
 * The strictness is not taste. Mail libraries have routed addresses with comments, quoted parts or invisible
 * characters to other domains (nodemailer/nodemailer#1848). An address here has none, so all libraries read it alike.
 * Likewise for relays: some still send `a%b@c` and `b!a@c` on to host `b` (RFC 5321, appendix F.2), so a local part has
 * neither character.
 */

import { domainToASCII, domainToUnicode } from 'node:url'

export interface EmailAddress {
  /** Lower case with an ASCII domain: two spellings of one address have one key. */
  readonly key: string
  /** The address to send to: the local part as its owner writes it, at the ASCII domain. */
  readonly mailbox: string
  /** As its owner writes it. */
  readonly shown: string
}

/** The address that a text is, spaces around it aside; undefined for anything else. */
export function parseEmail(text: string): EmailAddress | undefined {
  if (text.length > ADDRESS_CHARS_MAX) return undefined
  const shown = text.replace(/^ +| +$/g, '')
  const at = shown.indexOf('@')
  const [local, writtenDomain] = [shown.slice(0, Math.max(at, 0)), shown.slice(at + 1)]
  if (local.length > LOCAL_CHARS_MAX || ROUTING_CHARS.test(local)) return undefined
  if (!WRITTEN_DOMAIN_FORM.test(writtenDomain)) return undefined
  const domain = domainToASCII(writtenDomain)
  const mailbox = `${local}@${domain}`
  if (mailbox.length > ADDRESS_CHARS_MAX || !WHATWG_FORM.test(mailbox)) return undefined
  if (!isPublicDomain(domain) || !isAsciiForm(domain)) return undefined
  return { key: mailbox.toLowerCase(), mailbox, shown }
}

/** `a•••@b.co` for `ann@b.co`: enough for its owner to know it by. */
export function maskEmail(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 1 ? MASK : `${address.slice(0, 1)}${MASK}${address.slice(at)}`
}

/** `Choice:` a name of one label is a machine of ours, and one that ends in a number is an IPv4 address. */
function isPublicDomain(domain: string): boolean {
  const lastDot = domain.lastIndexOf('.')
  return lastDot !== -1 && /[a-z]/.test(domain.slice(lastDot))
}

/** Newer Nodes leave an ASCII form as it is, whether or not it stands for anything (WHATWG URL). */
function isAsciiForm(domain: string): boolean {
  const unicode = domainToUnicode(domain)
  return !unicode.includes('xn--') && domainToASCII(unicode) === domain
}

/** RFC 5321, section 4.5.3.1: a path of 256 with its brackets, and the local part. */
const ADDRESS_CHARS_MAX = 254
const LOCAL_CHARS_MAX = 64
const MASK = '•••'
const ROUTING_CHARS = /[%!]/
/**
 * What a domain may be written with: visible letters, marks and digits of any script. UTS 46 would drop the invisible
 * ones, and Node's function also decodes percent signs and cuts at a slash.
 */
const WRITTEN_DOMAIN_FORM = /^(?:(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{M}\p{N}.-])+$/u
/** html.spec.whatwg.org, "valid email address", word for word. */
const WHATWG_FORM =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/

/**
 * Addresses of the operator's own services: webhooks, login check, SMS gateway. Plain http goes to this machine and private
 * networks alone, https anywhere; nothing goes to the addresses by which a cloud hands out credentials. A name is judged by the
 * addresses that it has at that moment, and the connection goes to one that was judged.
 */

import { type LookupAddress, lookup } from 'node:dns'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { type HttpPost, type PostResult, post } from './http-post.ts'
import { AddressRefusedError, type Resolve } from './public-lookup.ts'

/** The rule for a setting; connections are judged besides. Undefined for an address that is in order. */
export function faultOfOperatorUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return 'is not an address'
  const { protocol, hostname } = new URL(text)
  if (protocol !== 'https:' && protocol !== 'http:') return 'is an https or http address'
  const host = bareHost(hostname)
  if (isNever(host)) return 'is an address at which a cloud hands out credentials'
  const isPlain = protocol === 'http:'
  if (isPlain && !(isIP(host) ? isPrivateAddress(host) : isPrivateName(host)))
    return 'is an https address, or an http address of this machine or a private network'
  return undefined
}

/** The same for an address that is no secret, and so has none in it. */
export function faultOfWebhookUrl(text: string): string | undefined {
  const fault = faultOfOperatorUrl(text)
  if (fault !== undefined) return fault
  const { username, password, hash } = new URL(text)
  if (username !== '' || password !== '') return 'has no name and password: the signature says who sends'
  return hash === '' ? undefined : 'has no part behind a #'
}

/** As `post`, for the address of a setting. `address-not-allowed` where the host has no address that the rule allows. */
export function postToOperator(asked: Omit<HttpPost, 'agent'>): Promise<PostResult> {
  if (faultOfOperatorUrl(asked.url) !== undefined)
    return Promise.resolve({ kind: 'failed', reason: 'address-not-allowed' })
  const agents = asked.keepsConnection ? KEPT : SINGLE
  return post({ ...asked, agent: asked.url.startsWith('https:') ? agents.https : agents.http })
}

/** In the form in which sockets ask: the addresses that the rule allows. `resolve` is the system's if it is left out. */
export function operatorLookup(isPlain: boolean, resolve: Resolve = lookup as Resolve): LookupFunction {
  const isAllowed = ({ address }: LookupAddress) =>
    !isNever(address) && (!isPlain || isPrivateAddress(address))
  return (hostname, options, callback) => {
    if (isNever(bareHost(hostname))) return callback(refusalOf(hostname), [])
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, [])
      const allowed = found.filter(isAllowed)
      const [first] = allowed
      if (first === undefined) return callback(refusalOf(hostname), [])
      if (options.all) return callback(null, allowed)
      callback(null, first.address, first.family)
    })
  }
}

function refusalOf(hostname: string): AddressRefusedError {
  return new AddressRefusedError('address-not-allowed', `${hostname} has no address that is allowed`)
}

/** Without the brackets of an IPv6 address, and the dot at the end of a name. */
function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** Whether it is an address of this machine or a private network (RFC 1918, RFC 4193). */
function isPrivateAddress(address: string): boolean {
  return PRIVATE.check(address, familyOf(address))
}

/** Whether the name can only be of a private network: it has a single label, or ends as only private ones do. */
function isPrivateName(host: string): boolean {
  return !host.includes('.') || PRIVATE_NAME.test(host)
}

/** Whether nothing ever goes there. */
function isNever(host: string): boolean {
  if (isIP(host) === 0) return METADATA_NAMES.has(host.toLowerCase())
  return NEVER.check(host, familyOf(host))
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4'
}

function agentsOf(keepAlive: boolean) {
  return {
    http: new HttpAgent({ keepAlive, timeout: IDLE_MS, lookup: operatorLookup(true) }),
    https: new HttpsAgent({ keepAlive, timeout: IDLE_MS, lookup: operatorLookup(false) }),
  }
}

/** How long a connection waits for its next request: less than the five seconds after which many servers close theirs. */
const IDLE_MS = 4_000
/** RFC 6761, RFC 6762, RFC 8375, and what ICANN has set aside for private use. */
const PRIVATE_NAME = /\.(?:localhost|local|internal|home\.arpa)$/
const METADATA_NAMES: ReadonlySet<string> = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
])

const PRIVATE = new BlockList()
PRIVATE.addSubnet('127.0.0.0', 8, 'ipv4')
PRIVATE.addSubnet('10.0.0.0', 8, 'ipv4')
PRIVATE.addSubnet('172.16.0.0', 12, 'ipv4')
PRIVATE.addSubnet('192.168.0.0', 16, 'ipv4')
PRIVATE.addAddress('::1', 'ipv6')
PRIVATE.addSubnet('fc00::', 7, 'ipv6')

const NEVER = new BlockList()
NEVER.addSubnet('0.0.0.0', 8, 'ipv4')
NEVER.addSubnet('169.254.0.0', 16, 'ipv4')
// Alibaba Cloud, Azure, Oracle Cloud.
NEVER.addAddress('100.100.100.200', 'ipv4')
NEVER.addAddress('168.63.129.16', 'ipv4')
NEVER.addAddress('192.0.0.192', 'ipv4')
NEVER.addSubnet('224.0.0.0', 3, 'ipv4')
NEVER.addAddress('::', 'ipv6')
NEVER.addSubnet('fe80::', 10, 'ipv6')
NEVER.addSubnet('ff00::', 8, 'ipv6')
// Amazon, and 169.254.0.0/16 behind NAT64.
NEVER.addAddress('fd00:ec2::254', 'ipv6')
NEVER.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6')

const SINGLE = agentsOf(false)
const KEPT = agentsOf(true)

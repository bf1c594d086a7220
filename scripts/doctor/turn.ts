/**
 * The relay: a real allocation by each way that clients get, with credentials made like the server's. Also checks
 * whether it lets its users into the operator's own network, which is a relay's default.
 */

import { parseTurnUrl, turnCredentials } from '../../src/domain/calls/turn.ts'
import type { UserId } from '../../src/domain/ids.ts'
import { type Check, type Finding, fails, off, ok, reasonOf } from './finding.ts'
import {
  ATTRIBUTES,
  type Attribute,
  formatRequest,
  formatXorAddress,
  type LongTermCredentials,
  METHODS,
  parseXorAddress,
} from './stun.ts'
import { openTurnLink, type TurnAddress, type TurnLink } from './turn-link.ts'

export const checkTurn: Check = async ({ config }) => {
  const { turn } = config.application
  if (turn === undefined)
    return [off('turn', 'set CALLSIGN_TURN_SECRETS, CALLSIGN_TURN_URL and CALLSIGN_TURN_TLS_URL')]
  const { username, password } = turnCredentials(turn, 0n as UserId, Date.now())
  const addresses = turn.addresses.uris.map(addressOf)
  const found = await Promise.all(addresses.map(address => tryWay(address, username, password)))
  return found.flat()
}

function addressOf(uri: string): TurnAddress {
  const { scheme, authority, transport } = parseTurnUrl(uri)!
  const [, host = '', port] = /^(.*?)(?::(\d+))?$/.exec(authority)!
  const isTls = scheme === 'turns'
  return {
    host: host.replace(/^\[|\]$/g, ''),
    port: Number(port ?? (isTls ? 5349 : 3478)),
    way: isTls ? 'tls' : transport === 'tcp' ? 'tcp' : 'udp',
  }
}

async function tryWay(address: TurnAddress, username: string, password: string): Promise<readonly Finding[]> {
  const check = `turn ${address.way}`
  const where = `${address.host}:${address.port}`
  let link: TurnLink | undefined
  try {
    link = await openTurnLink(address)
    return await allocate(link, check, where, { username, password })
  } catch (error) {
    const reason = error instanceof Error && !('code' in error) ? error.message : reasonOf(error)
    return [fails(check, `${where}: ${reason}: does the relay listen there, and is the way to it open?`)]
  } finally {
    link?.close()
  }
}

/** Asks, gets realm and nonce, asks again with the secret (RFC 8656, section 7.2), and gives it back. */
async function allocate(
  link: TurnLink,
  check: string,
  where: string,
  { username, password }: Pick<LongTermCredentials, 'username' | 'password'>,
): Promise<readonly Finding[]> {
  const challenge = await link.exchange(formatRequest(METHODS.allocate, [BY_UDP]))
  const realm = challenge.attributes.get(ATTRIBUTES.realm)?.toString('utf8')
  const nonce = challenge.attributes.get(ATTRIBUTES.nonce)
  if (challenge.isSuccess) {
    return [fails(check, `${where} relays for everybody: it needs use-auth-secret in its configuration`)]
  }
  if (challenge.errorCode !== 401 || realm === undefined || nonce === undefined) {
    return [
      fails(
        check,
        `${where} answers with error ${challenge.errorCode}: its configuration needs use-auth-secret and realm`,
      ),
    ]
  }
  const { answer, credentials } = await allocateWith(link, { username, password, realm, nonce })
  if (!answer.isSuccess) return [fails(check, `${where} ${refusalOf(answer.errorCode)}`)]
  const relayed = parseXorAddress(answer.attributes.get(ATTRIBUTES.xorRelayedAddress))
  const open = await reachable(link, credentials)
  await link.exchange(formatRequest(METHODS.refresh, [[ATTRIBUTES.lifetime, Buffer.alloc(4)]], credentials))
  if (open.length > 0) {
    return [
      fails(
        check,
        `${where} lets every user reach ${open.join(' and ')}: give it the denied-peer-ip lines of deploy/turnserver.conf.example`,
      ),
    ]
  }
  return [ok(check, `${where} relays by ${relayed}, and not into private networks`)]
}

/** A nonce may be stale already (438): then once more with the one that came instead (RFC 8489, section 9.2.5). */
async function allocateWith(link: TurnLink, credentials: LongTermCredentials) {
  const answer = await link.exchange(formatRequest(METHODS.allocate, [BY_UDP], credentials))
  const nonce = answer.attributes.get(ATTRIBUTES.nonce)
  if (answer.errorCode !== 438 || nonce === undefined) return { answer, credentials }
  const renewed = { ...credentials, nonce }
  return {
    answer: await link.exchange(formatRequest(METHODS.allocate, [BY_UDP], renewed)),
    credentials: renewed,
  }
}

/** Which of these addresses, that no user has business with, the relay would send to. Nothing is sent. */
async function reachable(link: TurnLink, credentials: LongTermCredentials): Promise<string[]> {
  const open: string[] = []
  for (const address of FORBIDDEN) {
    const peer: Attribute = [ATTRIBUTES.xorPeerAddress, formatXorAddress(address, 80)]
    const { isSuccess } = await link.exchange(formatRequest(METHODS.createPermission, [peer], credentials))
    if (isSuccess) open.push(address)
  }
  return open
}

function refusalOf(errorCode: number): string {
  if (errorCode === 401)
    return 'does not take our credentials: is its static-auth-secret the first of CALLSIGN_TURN_SECRETS, and its clock right?'
  if (errorCode === 486 || errorCode === 508)
    return `has no room for another allocation (error ${errorCode}): look at its quotas and ports`
  return `refuses the allocation with error ${errorCode}`
}

/** The relayed side speaks UDP (RFC 8656, section 18.8). */
const BY_UDP: Attribute = [ATTRIBUTES.requestedTransport, Buffer.of(17, 0, 0, 0)]
/** This machine, and where clouds tell a machine its secrets. */
const FORBIDDEN = ['127.0.0.1', '169.254.169.254']

/**
 * How two people make sure, outside of the app, that they mean each other: a link or QR code that says who it is of, and
 * sixty digits to read out. Neither needs to trust the server.
 */
import { decodeBase64, encodeBase64, sha256 } from '#primitives'
import { SignalError } from '../errors.ts'
import { HASH_BYTES } from '../log/hash.ts'
import { indexOriginOf } from '../log/index-leaf.ts'
import { packCheckpoint, readCheckpoint } from './packed-checkpoint.ts'
import type { SignedCheckpoint } from './signed-checkpoint.ts'

/** A person with a device list. */
export interface ListedPerson {
  readonly userId: bigint
  /** `deviceListHash` of the newest list, base64. */
  readonly listHash: string
}

/** The content of a link's fragment. */
export interface SharedPerson extends ListedPerson {
  /** For `LogClient.compareWith`; `indexNote` is of the log's index. */
  readonly note?: string
  readonly indexNote?: string
}

/**
 * Twelve groups of five digits, the same for both people. Another device list gives another code, so a false list shows; it
 * changes when either of them adds or removes a device.
 */
export function comparisonCode(one: ListedPerson, other: ListedPerson): string {
  const people = one.userId < other.userId ? [one, other] : [other, one]
  return people.flatMap(groupsOf).join(' ')
}

/**
 * The fragment for a link or QR code, with the sign `#`. Browsers do not send it to the server. The checkpoints are the highest
 * ones of this app, of the log and of its index.
 */
export function shareFragment(
  { userId, listHash }: ListedPerson,
  checkpoint?: SignedCheckpoint,
  indexCheckpoint?: SignedCheckpoint,
): string {
  const notes = `${noteMember('n', checkpoint)}${noteMember('i', indexCheckpoint)}`
  return `#u=${userId}&l=${toUrl(listHash)}${notes}`
}

/**
 * Reads a fragment, with or without its `#`; undefined where it says nothing of a person. `origin` is the name of the app's
 * log. Throws `MALFORMED` for one that does and is broken: do not add that contact.
 */
export function readShareFragment(fragment: string, origin: string): SharedPerson | undefined {
  const members = new Map(
    fragment
      .replace(/^#/, '')
      .split('&')
      .map(member => [member.slice(0, 2), member.slice(2)]),
  )
  const [user, list] = [members.get('u='), members.get('l=')]
  if (user === undefined && list === undefined) return undefined
  if (user === undefined || list === undefined || !USER_ID.test(user)) throw malformed()
  const userId = BigInt(user)
  if (userId !== BigInt.asUintN(64, userId)) throw malformed()
  const listHash = fromUrl(list)
  if (decodeBase64(listHash).length !== HASH_BYTES) throw malformed()
  const note = readNote(members.get('n='), origin)
  const indexNote = readNote(members.get('i='), indexOriginOf(origin))
  return {
    userId,
    listHash,
    ...(note !== undefined && { note }),
    ...(indexNote !== undefined && { indexNote }),
  }
}

function noteMember(name: string, checkpoint: SignedCheckpoint | undefined): string {
  const packed = checkpoint && packCheckpoint(checkpoint)
  return packed === undefined ? '' : `&${name}=${toUrl(encodeBase64(packed))}`
}

function readNote(packed: string | undefined, origin: string): string | undefined {
  if (packed === undefined) return undefined
  const note = readCheckpoint(decodeBase64(fromUrl(packed)), origin)
  if (note === undefined) throw malformed()
  return note
}

/** 30 digits, of 240 bits of SHA-256: to find another list with the same ones takes 2^99 tries. */
function groupsOf({ userId, listHash }: ListedPerson): string[] {
  const hash = decodeBase64(listHash)
  if (hash.length !== HASH_BYTES) throw malformed()
  const bytes = new Uint8Array(PURPOSE.length + 8 + HASH_BYTES)
  bytes.set(PURPOSE)
  new DataView(bytes.buffer).setBigUint64(PURPOSE.length, userId)
  bytes.set(hash, PURPOSE.length + 8)
  const digest = sha256(bytes)
  return Array.from({ length: 6 }, (_, group) => {
    let value = 0
    for (const octet of digest.subarray(5 * group, 5 * group + 5)) value = value * 256 + octet
    return String(value % 100_000).padStart(5, '0')
  })
}

function toUrl(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

function fromUrl(text: string): string {
  const base64 = text.replaceAll('-', '+').replaceAll('_', '/')
  return base64 + '='.repeat(-base64.length & 3)
}

function malformed(): SignalError {
  return new SignalError('MALFORMED', 'the link is damaged')
}

const USER_ID = /^(?:0|[1-9][0-9]{0,19})$/
const PURPOSE = Uint8Array.from('callsign comparison v1\n', character => character.charCodeAt(0))

/**
 * The devices of each person that this app encrypts for, as it has come to know them. A device list that the log proves
 * says which they are; a person whose apps make no list is trusted on first use. Every change since is an event.
 */
import { decodeBase64, encodeBase64, sha256 } from '#primitives'
import {
  type DeviceList,
  type DeviceListVerdict,
  deviceListHash,
  judgeDeviceList,
  parseDeviceList,
} from '../log/device-list.ts'
import { equalHashes } from '../log/hash.ts'
import type { ListedPerson } from './comparison.ts'
import type { AbsentList } from './index-check.ts'
import { type LeastProved, leastOf, UNINDEXED } from './index-proof.ts'
import { compareOwnKeys } from './key-history.ts'
import {
  changesOf,
  type DeviceEvent,
  isSame,
  type KeyQuestion,
  type KnownDevice,
  type KnownList,
  type KnownUser,
  type KnownUserStore,
  questionAfter,
  unlistedDevicesHash,
} from './known-user.ts'
import type { LogClient, LookupOutcome, OwnKeysReport } from './log-client.ts'
import type { Uint64, VerifiedKey } from './lookup.ts'
import { MissedLists, type NewestList, type ReadDeviceLists } from './missed-lists.ts'
import { CheckFailed, during, type Refusal, settle, type Unanswered } from './verdict.ts'

/** A user as `GET user/publicKeys` and a friend request's answer name it. */
export interface NamedUser {
  readonly userId: string
  readonly devices: readonly NamedDevice[]
  /** Base64, with the VRF hash under which the log holds its SHA-256. */
  readonly deviceList?: string
  readonly deviceListHash?: string
  /** Instead of a list: the proof that the log has none. */
  readonly absent?: AbsentList
}

export interface NamedDevice {
  readonly deviceId: string
  readonly keyAlgorithm: string
  readonly publicKey: string
  readonly publicKeyHash: string
}

/** A device to encrypt for. */
export interface VerifiedDevice extends NamedDevice {
  /** Uncompressed P-256 point, base64; left out where no list names the device. */
  readonly signingKey?: string
}

export interface VerifiedDevices {
  readonly kind: 'verified'
  /** Whether a list says which devices there are, or the server alone. */
  readonly basis: 'list' | 'first-use'
  /** Encrypt for these only. */
  readonly devices: readonly VerifiedDevice[]
  /** The least that the log's index proves of the keys that were looked up. */
  readonly complete: LeastProved['complete']
  readonly isProved: boolean
  readonly list?: DeviceList
  /** Ask before you encrypt for them. It comes again until `accept` is called. */
  readonly question?: KeyQuestion
  /** Each comes again until `shown` is called. */
  readonly events: readonly DeviceEvent[]
}

type ContactsClient = Pick<LogClient, 'lookUpAll' | 'checkOwnKeys' | 'verifyAbsence'>

export class ContactDevices {
  readonly #client: ContactsClient
  readonly #store: KnownUserStore
  readonly #missed: MissedLists
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(client: ContactsClient, store: KnownUserStore, readLists: ReadDeviceLists) {
    this.#client = client
    this.#store = store
    this.#missed = new MissedLists(client, readLists)
  }

  /**
   * The devices of this person to encrypt for, once the log proves them. Refused at `deviceList` where the list or the
   * devices named beside it do not hold, or a list that there was is left out; else at the check of a lookup that failed.
   * Unanswered also where lists that this app missed are withheld. Rejects as `LogClient.lookUp`.
   */
  verify(user: NamedUser): Promise<VerifiedDevices | Refusal | Unanswered> {
    return this.#inTurn(() =>
      user.deviceList === undefined && user.deviceListHash === undefined
        ? this.#trustOnFirstUse(user)
        : this.#verifyListed(user),
    )
  }

  /**
   * As `verify`, of a person whom a link or QR code names: refused at `deviceList` unless they are that person, with the list
   * of the link or with lists that have followed it in the log. Nothing is remembered where that fails.
   */
  verifyShared(user: NamedUser, shared: ListedPerson): Promise<VerifiedDevices | Refusal | Unanswered> {
    return this.#inTurn(async () => {
      if (user.userId !== `${shared.userId}`) return refused(`the link is of user ${shared.userId}`)
      if (user.deviceList === undefined || user.deviceListHash === undefined)
        return refused('the device list is left out')
      return this.#verifyListed(user, shared.listHash)
    })
  }

  /** The person in front of the screen goes on with the keys of this hash. Returns the question that is still open. */
  accept(userId: string, listHash: string): Promise<KeyQuestion | undefined> {
    return this.#inTurn(async () => {
      const known = await this.#store.get(userId)
      const { question, ...rest } = known ?? {}
      if (question?.listHash !== listHash) return question
      await this.#store.put(rest as KnownUser)
      return undefined
    })
  }

  /** The app has shown the events that `verify` gave, so they come no more. */
  shown(userId: string, events: readonly DeviceEvent[]): Promise<void> {
    return this.#inTurn(async () => {
      const known = await this.#store.get(userId)
      if (!known) return
      const left = known.events.filter(each => !events.some(event => isSame(each, event)))
      await this.#store.put({ ...known, events: left })
    })
  }

  /**
   * For one's own user id: whether the log holds, in the place of one's lists, exactly those that this device has followed.
   * `clean` where there is no list.
   */
  async checkOwnList(userId: string): Promise<OwnKeysReport | Refusal | Unanswered> {
    const list = (await this.#store.get(userId))?.list
    if (list === undefined) return { kind: 'clean', entries: [], ...leastOf([UNINDEXED]) }
    const { vrfHash, index, since } = list
    const bytes = decodeBase64(list.list)
    const hash = encodeBase64(deviceListHash(bytes))
    const claim = { userId, deviceId: LIST_SLOT, vrfHash, publicKeys: [hash] }
    const report = await this.#client.checkOwnKeys(claim)
    if (report.kind !== 'clean' && report.kind !== 'alert') return report
    const { entries, checkpoint, complete, isProved } = report
    const followed = entries.filter(entry => entry.index >= since.index && entry.index <= index)
    // Each list names the one before, and the device that signed it had judged that: one entry too many is a list beside them.
    const isWhole = followed.length === parseDeviceList(bytes).seq - since.seq + 1
    const judged = entries.filter(entry => (isWhole ? entry.index >= index : entry.index >= since.index))
    const proved = { complete, isProved }
    return { ...compareOwnKeys(judged, [hash]), entries, ...proved, ...(checkpoint && { checkpoint }) }
  }

  async #trustOnFirstUse({
    userId,
    devices,
    absent,
  }: NamedUser): Promise<VerifiedDevices | Refusal | Unanswered> {
    const known = (await this.#store.get(userId)) ?? undefined
    if (known?.list !== undefined) return refused(`the device list of user ${userId} is left out`)
    const claims = devices.map(device => claimOf(userId, device))
    const outcomes = await this.#client.lookUpAll(claims)
    const failed = failedLookup(claims, outcomes)
    if (failed !== undefined) return failed
    const absence = await this.#client.verifyAbsence({ userId, deviceId: LIST_SLOT }, absent)
    if (absence.kind !== 'verified') return absence
    const found = {
      basis: 'first-use',
      devices,
      ...leastOf([absence, ...(outcomes as VerifiedKey[])]),
    } as const
    const now = devices.map(knownDevice)
    // A person without devices has not been met yet.
    if (known === undefined && now.length === 0) return { kind: 'verified', ...found, events: [] }
    const news = known === undefined ? [] : changesOf(known.devices, now, 'added', 'replaced')
    const kinds = ['replaced', 'added'] as const
    const kind = kinds.find(each => news.some(event => event.kind === each))
    const asked = questionAfter(known, kind, unlistedDevicesHash(userId, now))
    const events = await this.#keep({ userId, devices: now, events: known?.events ?? [], ...asked }, news)
    return { kind: 'verified', ...found, events, ...asked }
  }

  async #verifyListed(user: NamedUser, linkedHash?: string): Promise<VerifiedDevices | Refusal | Unanswered> {
    const { userId } = user
    const known = (await this.#store.get(userId)) ?? undefined
    const read = settle(() => readList(user, known?.list))
    if (read.kind === 'refused') return read
    const { bytes, vrfHash, verdict } = read
    const { list } = verdict
    const listHash = encodeBase64(deviceListHash(bytes))
    const isListed = (device: NamedDevice) =>
      list.devices.some(each => `${each.deviceId}` === device.deviceId)
    const devices = user.devices.filter(isListed)
    const slot = { userId, deviceId: LIST_SLOT, vrfHash, publicKey: listHash }
    const claims = [slot, ...devices.map(device => claimOf(userId, device))]
    const outcomes = await this.#client.lookUpAll(claims)
    const failed = failedLookup(claims, outcomes)
    if (failed !== undefined) return failed
    const { index } = outcomes[0] as VerifiedKey
    const late = settle(() => assertNewest(known?.list, index, verdict))
    if (late.kind === 'refused') return late
    const newest = { list, bytes, vrfHash, index }
    const followed = await this.#follow(newest, verdict.kind, known?.list, linkedHash ?? listHash)
    if (followed.kind === 'refused' || followed.kind === 'unanswered') return followed

    const isReset = followed.kind === 'reset'
    const isNew = known?.list === undefined || isReset
    const since = isNew ? { index, seq: list.seq } : known.list.since
    const now = list.devices.map(({ deviceId, publicKeySha256 }) => ({
      deviceId: `${deviceId}`,
      keyHash: encodeBase64(publicKeySha256),
    }))
    const news = newsOf(known, now, followed.kind)
    for (const { deviceId } of user.devices.filter(device => !isListed(device)))
      news.push({ kind: 'unlisted', deviceId })
    const kept = { list: encodeBase64(bytes), vrfHash, index, since }
    const isFirst = followed.kind === 'first' && known !== undefined
    const asked = questionAfter(known, isReset ? 'reset' : isFirst ? 'first-list' : undefined, listHash)
    const memory = { userId, devices: now, list: kept, events: known?.events ?? [], ...asked }
    const events = await this.#keep(memory, news)
    return {
      kind: 'verified',
      basis: 'list',
      devices: devices.map(device => withSigningKey(device, list)),
      ...leastOf(outcomes as VerifiedKey[]),
      list,
      events,
      ...asked,
    }
  }

  /** Judges the newest list once this app has the lists that it missed, or those since the link. */
  async #follow(
    newest: NewestList,
    kind: JudgedKind,
    known: KnownList | undefined,
    linkedHash: string,
  ): Promise<{ readonly kind: Exclude<JudgedKind, 'missed'> } | Refusal | Unanswered> {
    let followed: { readonly kind: Exclude<JudgedKind, 'missed'> } | Refusal | Unanswered
    if (kind !== 'missed') followed = { kind }
    else
      followed = await this.#missed.fromKnown(newest, {
        bytes: decodeBase64(known!.list),
        index: known!.index,
      })
    const isSettled = followed.kind === 'refused' || followed.kind === 'unanswered'
    if (isSettled || linkedHash === encodeBase64(deviceListHash(newest.bytes))) return followed
    const linked = await this.#missed.fromLinked(newest, linkedHash)
    return linked.kind === 'successor' ? followed : linked
  }

  /** Returns all events to be shown. */
  async #keep(known: KnownUser, news: readonly DeviceEvent[]): Promise<readonly DeviceEvent[]> {
    const fresh = news.filter(event => !known.events.some(each => isSame(each, event)))
    const all = [...known.events, ...fresh]
    // A server may name thousands of devices: they do not crowd out that the person has started over.
    const events = all.filter(({ kind }, at) => kind === 'reset' || at >= all.length - EVENTS_MAX)
    await this.#store.put({ ...known, events })
    return events
  }

  #inTurn<Value>(act: () => Promise<Value>): Promise<Value> {
    const turn = this.#lastTurn.then(act)
    this.#lastTurn = turn.catch(() => {})
    return turn
  }
}

/** `missed`: of a higher seq than the next one. */
type JudgedKind = Exclude<DeviceListVerdict['kind'], 'refused'> | 'missed'

interface JudgedList {
  readonly kind: JudgedKind
  readonly list: DeviceList
}

interface ReadList {
  readonly kind: 'read'
  readonly bytes: Uint8Array
  readonly vrfHash: string
  readonly verdict: JudgedList
}

/** The list, judged by the one known before; and the devices beside it by the list. Throws `CheckFailed`. */
function readList(user: NamedUser, known: KnownList | undefined): ReadList {
  const { userId, deviceList, deviceListHash: vrfHash } = user
  if (typeof deviceList !== 'string' || typeof vrfHash !== 'string')
    throw refusal('the server names a list or its hash without the other')
  const bytes = during('deviceList', () => decodeBase64(deviceList))
  const before = known === undefined ? undefined : decodeBase64(known.list)
  const verdict = followed(before, judgeDeviceList(BigInt(userId), before, bytes), bytes)
  for (const device of user.devices) {
    const listed = verdict.list.devices.find(each => `${each.deviceId}` === device.deviceId)
    if (listed === undefined) continue
    const key = during('deviceList', () => decodeBase64(device.publicKey))
    if (listed.algorithm !== device.keyAlgorithm || !equalHashes(listed.publicKeySha256, sha256(key)))
      throw refusal(`the key of device ${device.deviceId} is not the one in the list`)
  }
  return { kind: 'read', bytes, vrfHash, verdict }
}

/**
 * An app that was away has missed lists: one of a higher seq is held against them. Any other list that does not follow the
 * known one comes from another first one, so the person has started over. It has to be younger than the known one, or else
 * a log could bring back a list from which a device was removed.
 */
function followed(before: Uint8Array | undefined, verdict: DeviceListVerdict, bytes: Uint8Array): JudgedList {
  if (verdict.kind !== 'refused') return verdict
  if (before === undefined || !REASONS_OF_MISSED_LISTS.has(verdict.reason)) throw refusal(verdict.detail)
  const [known, list] = [parseDeviceList(before), parseDeviceList(bytes)]
  if (verdict.reason === 'seq-jump' && list.seq > known.seq) return { kind: 'missed', list }
  if (list.createdAtMs <= known.createdAtMs) throw refusal(`list ${list.seq} comes after list ${known.seq}`)
  return { kind: 'reset', list }
}

/** Throws `CheckFailed` where the log shows the list before the one that is known. */
function assertNewest(known: KnownList | undefined, index: number, verdict: JudgedList): JudgedList {
  if (known === undefined) return verdict
  const isInOrder = verdict.kind === 'unchanged' ? index >= known.index : index > known.index
  if (!isInOrder) throw refusal(`the list is at leaf ${index}, the one known before at leaf ${known.index}`)
  return verdict
}

function newsOf(
  known: KnownUser | undefined,
  now: readonly KnownDevice[],
  verdict: Exclude<JudgedKind, 'missed'>,
): DeviceEvent[] {
  if (verdict === 'reset') return [{ kind: 'reset' }]
  if (known === undefined || verdict === 'unchanged') return []
  if (verdict === 'first') return changesOf(known.devices, now, 'added', 'replaced')
  return changesOf(known.devices, now, 'added-by-list', 'added-by-list')
}

function claimOf(userId: Uint64, { deviceId, publicKeyHash: vrfHash, publicKey }: NamedDevice) {
  return { userId, deviceId, vrfHash, publicKey }
}

/** The claims are one user's devices, in the order of the outcomes; the first may be the list's. */
function failedLookup(
  claims: readonly { readonly deviceId: string }[],
  outcomes: readonly LookupOutcome[],
): Refusal | Unanswered | undefined {
  return (
    outcomes.find(outcome => outcome.kind === 'refused') ??
    outcomes.find(outcome => outcome.kind === 'unanswered') ??
    otherKey(claims, outcomes)
  )
}

/** A device has one key for its whole life, so a second entry is an intruder's. The list's entries follow each other. */
function otherKey(
  claims: readonly { readonly deviceId: string }[],
  outcomes: readonly LookupOutcome[],
): Refusal | undefined {
  const at = outcomes.findIndex(
    (outcome, position) => claims[position]!.deviceId !== LIST_SLOT && hasOtherKey(outcome as VerifiedKey),
  )
  return at < 0 ? undefined : otherKeyOf(claims[at]!.deviceId)
}

/** The refusal of a device that has a second key in the log. */
export function otherKeyOf(deviceId: string): Refusal {
  const detail = `another key was logged under the hash of device ${deviceId}`
  return { kind: 'refused', check: 'otherKey', detail }
}

function hasOtherKey(verdict: VerifiedKey): boolean {
  return verdict.complete === true && verdict.indexes.length > 1
}

function knownDevice({ deviceId, publicKey }: NamedDevice): KnownDevice {
  return { deviceId, keyHash: encodeBase64(sha256(decodeBase64(publicKey))) }
}

function withSigningKey(device: NamedDevice, { devices }: DeviceList): VerifiedDevice {
  const { signingKey } = devices.find(({ deviceId }) => `${deviceId}` === device.deviceId)!
  return { ...device, signingKey: encodeBase64(signingKey) }
}

function refused(detail: string): Refusal {
  return { kind: 'refused', check: 'deviceList', detail }
}

function refusal(detail: string): CheckFailed {
  return new CheckFailed('deviceList', detail)
}

/** `judgeDeviceList` gives them for a list that does not follow the known one at once. */
const REASONS_OF_MISSED_LISTS: ReadonlySet<string> = new Set(['seq-jump', 'wrong-previous-hash'])
/** The device id of the list's own entry. */
const LIST_SLOT = '0'
/** Only a server that lies makes more. */
const EVENTS_MAX = 64

/**
 * Device lists that an app missed. The server has them, and the log says which they are: exactly the entries of the user's
 * slot 0, in their order. Without them a later list is neither taken nor refused.
 */
import { decodeBase64, encodeBase64 } from '#primitives'
import {
  DEVICE_LIST_SLOT,
  type DeviceList,
  deviceListHash,
  judgeDeviceList,
  parseDeviceList,
} from '../log/device-list.ts'
import type { LoggedKey } from './key-history.ts'
import type { LogClient } from './log-client.ts'
import { CheckFailed, type Refusal, settle, type Unanswered } from './verdict.ts'

/**
 * One reply of `GET user/device-lists`: lists in base64. `after` is a seq, undefined for all from the last list of seq 0 on.
 */
export type ReadDeviceLists = (userId: string, after: number | undefined) => Promise<readonly string[]>

/** The newest list, which the log proves at leaf `index`. */
export interface NewestList {
  readonly list: DeviceList
  readonly bytes: Uint8Array
  readonly vrfHash: string
  readonly index: number
}

/** A list that this app has followed, and its leaf. */
export interface EarlierList {
  readonly bytes: Uint8Array
  readonly index: number
}

/** Whether the devices of the earlier list have signed all that followed, or the person has started over since. */
export interface Followed {
  readonly kind: 'successor' | 'reset'
}

interface History {
  readonly kind: 'history'
  /** All of slot 0, the newest list's entry last. */
  readonly entries: readonly LoggedKey[]
}

interface Chain {
  readonly kind: 'chain'
  /** The newest list last. */
  readonly lists: readonly Uint8Array[]
}

export class MissedLists {
  readonly #client: Pick<LogClient, 'checkOwnKeys'>
  readonly #readLists: ReadDeviceLists

  constructor(client: Pick<LogClient, 'checkOwnKeys'>, readLists: ReadDeviceLists) {
    this.#client = client
    this.#readLists = readLists
  }

  /** From a known list of a lower seq to the newest one. */
  async fromKnown(newest: NewestList, known: EarlierList): Promise<Followed | Refusal | Unanswered> {
    const history = await this.#history(newest)
    if (history.kind !== 'history') return history
    const { entries } = history
    const hash = hashOf(known.bytes)
    if (!entries.some(({ index, publicKey }) => index === known.index && publicKey === hash))
      return withheld('the history leaves out the list known before')
    const { seq, createdAtMs } = parseDeviceList(known.bytes)
    const chain = await this.#chain(newest, entries, seq)
    if (chain.kind !== 'chain') return chain
    const { lists } = chain
    const first = judgeDeviceList(newest.list.userId, known.bytes, lists[0]!)
    // The list before the first one here has the seq of the known one, and is another.
    if (first.kind === 'refused' && first.reason === 'wrong-previous-hash') {
      if (newest.list.createdAtMs <= createdAtMs)
        return refused('the list is older than the one known before')
      return settled(newest, lists, 'reset')
    }
    const missed = entries.filter(({ index }) => index > known.index)
    if (missed.length > lists.length) return withheld('the log has more lists than the server shows')
    return settled(newest, [known.bytes, ...lists], 'successor')
  }

  /** From the list that a link names by its hash to the newest one. */
  async fromLinked(newest: NewestList, listHash: string): Promise<Followed | Refusal | Unanswered> {
    const history = await this.#history(newest)
    if (history.kind !== 'history') return history
    const { entries } = history
    if (!entries.some(({ publicKey }) => publicKey === listHash))
      return refused('the link names a device list that the log does not have of this user')
    const chain = await this.#chain(newest, entries, -1)
    if (chain.kind !== 'chain') return chain
    const isSame = chain.lists.some(bytes => hashOf(bytes) === listHash)
    return settled(newest, chain.lists, isSame ? 'successor' : 'reset')
  }

  async #history({ list, bytes, vrfHash, index }: NewestList): Promise<History | Refusal | Unanswered> {
    const claim = { userId: list.userId, deviceId: DEVICE_LIST_SLOT, vrfHash, publicKeys: [hashOf(bytes)] }
    const report = await this.#client.checkOwnKeys(claim)
    if (report.kind !== 'clean' && report.kind !== 'alert') return report
    return { kind: 'history', entries: report.entries.filter(entry => entry.index <= index) }
  }

  /** The lists after a seq up to the newest one, which are the newest entries of slot 0. */
  async #chain(
    { list: { userId, seq } }: NewestList,
    entries: readonly LoggedKey[],
    after: number,
  ): Promise<Chain | Unanswered> {
    const count = seq - after
    // Bound: a server could make any seq, but proves each entry.
    if (count > entries.length) return withheld('the log has fewer lists than were signed')
    const lists: Uint8Array[] = []
    while (lists.length < count) {
      const page = await this.#page(`${userId}`, after + lists.length)
      if (page.kind === 'unanswered') return page
      if (page.lists.length === 0) return withheld('the server leaves out lists')
      lists.push(...page.lists.slice(0, count - lists.length))
    }
    const logged = entries.slice(-count)
    const isLogged = lists.every((bytes, at) => hashOf(bytes) === logged[at]!.publicKey)
    return isLogged ? { kind: 'chain', lists } : withheld('the server shows other lists than the log has')
  }

  async #page(
    userId: string,
    seq: number,
  ): Promise<{ readonly kind: 'page'; readonly lists: readonly Uint8Array[] } | Unanswered> {
    try {
      const lists = await this.#readLists(userId, seq < 0 ? undefined : seq)
      return { kind: 'page', lists: lists.map(decodeBase64) }
    } catch (error) {
      return withheld(`the device lists could not be read: ${(error as Error).message}`)
    }
  }
}

/** Refused unless each of these lists is signed by a device of the one before it. */
function settled(
  { list: { userId } }: NewestList,
  lists: readonly Uint8Array[],
  kind: Followed['kind'],
): Followed | Refusal {
  return settle(() => {
    for (const [at, bytes] of lists.entries()) {
      if (at === 0) continue
      const verdict = judgeDeviceList(userId, lists[at - 1], bytes)
      if (verdict.kind === 'refused') throw new CheckFailed('deviceList', verdict.detail)
      if (verdict.kind !== 'successor') throw new CheckFailed('deviceList', 'a list between starts over')
    }
    return { kind }
  })
}

function hashOf(bytes: Uint8Array): string {
  return encodeBase64(deviceListHash(bytes))
}

function withheld(detail: string): Unanswered {
  return { kind: 'unanswered', detail }
}

function refused(detail: string): Refusal {
  return { kind: 'refused', check: 'deviceList', detail }
}

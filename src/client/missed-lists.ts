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
import type { LogClient, Unanswered } from './log-client.ts'
import { CheckFailed, type Refusal, settle } from './verdict.ts'

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

interface Chain {
  readonly kind: 'chain'
  /** All of slot 0, the newest list's entry last. */
  readonly entries: readonly LoggedKey[]
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
    const before = known.bytes
    const { seq, createdAtMs } = parseDeviceList(before)
    const chain = await this.#chain(newest, seq)
    if (chain.kind !== 'chain') return chain
    const { entries, lists } = chain
    const isKnown = ({ index, publicKey }: LoggedKey) =>
      index === known.index && publicKey === encodeBase64(deviceListHash(before))
    if (!entries.some(isKnown)) return withheld('the history leaves out the list known before')
    const first = judgeDeviceList(newest.list.userId, before, lists[0]!)
    // The list of that seq, before the first one here, is not the known one.
    if (first.kind === 'refused' && first.reason === 'wrong-previous-hash') {
      if (newest.list.createdAtMs <= createdAtMs)
        return refused('the list is older than the one known before')
      return settled(newest, lists, 'reset')
    }
    const missed = entries.filter(({ index }) => index > known.index)
    if (missed.length > lists.length) return withheld('the log has more lists than the server shows')
    return settled(newest, [before, ...lists], 'successor')
  }

  /** From the list that a link names by its hash to the newest one. */
  async fromLinked(newest: NewestList, listHash: string): Promise<Followed | Refusal | Unanswered> {
    const chain = await this.#chain(newest, undefined)
    if (chain.kind !== 'chain') return chain
    const { entries, lists } = chain
    if (!entries.some(({ publicKey }) => publicKey === listHash))
      return refused('the link names a device list that the log does not have of this user')
    const isSame = lists.some(bytes => encodeBase64(deviceListHash(bytes)) === listHash)
    return settled(newest, lists, isSame ? 'successor' : 'reset')
  }

  /** The lists after a seq up to the newest one, which are the newest entries of slot 0. */
  async #chain(newest: NewestList, after: number | undefined): Promise<Chain | Refusal | Unanswered> {
    const { list, bytes, vrfHash, index } = newest
    const userId = `${list.userId}`
    const claim = { userId, deviceId: `${DEVICE_LIST_SLOT}`, vrfHash }
    const report = await this.#client.checkOwnKeys({
      ...claim,
      publicKeys: [encodeBase64(deviceListHash(bytes))],
    })
    if (report.kind !== 'clean' && report.kind !== 'alert') return report
    const entries = report.entries.filter(entry => entry.index <= index)
    const count = list.seq - (after ?? -1)
    // Bound: a server could make any seq, but proves each entry.
    if (count > entries.length) return withheld('the log has fewer lists than were signed')
    const lists: Uint8Array[] = []
    while (lists.length < count) {
      const page = await this.#page(userId, lists.length === 0 ? after : (after ?? -1) + lists.length)
      if (page.kind === 'unanswered') return page
      if (page.lists.length === 0) return withheld('the server leaves out lists')
      lists.push(...page.lists.slice(0, count - lists.length))
    }
    const logged = entries.slice(-count)
    const isLogged = lists.every((bytes, at) => encodeBase64(deviceListHash(bytes)) === logged[at]?.publicKey)
    return isLogged
      ? { kind: 'chain', entries, lists }
      : withheld('the server shows other lists than the log has')
  }

  async #page(
    userId: string,
    after: number | undefined,
  ): Promise<{ readonly kind: 'page'; readonly lists: readonly Uint8Array[] } | Unanswered> {
    try {
      const lists = await this.#readLists(userId, after)
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

function withheld(detail: string): Unanswered {
  return { kind: 'unanswered', detail }
}

function refused(detail: string): Refusal {
  return { kind: 'refused', check: 'deviceList', detail }
}

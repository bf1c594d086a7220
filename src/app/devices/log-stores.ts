/**
 * What this app remembers of the log, in its storage: for each user of the app and each log, since a development server that
 * starts anew has another log of the same name.
 */

import {
  type CheckpointStore,
  type KeptCheckpoint,
  type KnownUser,
  type KnownUserStore,
  type ListedPerson,
  type PublishedKeys,
  type PublishedPolicy,
  parseLogKeys,
} from '../../client/client.ts'
import { type AppStorage, readStored, writeStored } from '../storage/storage.ts'

/** Two signed notes that contradict each other, the one known before first. */
export type Evidence = readonly [string, string]

export class LogStores {
  /** The name of the log. */
  readonly origin: string
  readonly checkpoints: CheckpointStore
  readonly knownUsers: KnownUserStore
  readonly #storage: AppStorage
  readonly #scope: string

  /** Throws as `parseLogKeys`. */
  constructor(storage: AppStorage, userId: string, log: PublishedKeys | PublishedPolicy) {
    this.origin = parseLogKeys(log).verifier.name
    // A log changes its key under a policy that names both.
    const name = 'policy' in log ? this.origin : log.vkey.split('+', 2).join('+')
    this.#scope = `${userId}.${name}`
    this.#storage = storage
    this.checkpoints = {
      get: origin => readStored<KeptCheckpoint>(storage, this.#checkpoint(origin), isCheckpoint),
      put: kept => writeStored(storage, this.#checkpoint(kept.origin), kept),
    }
    this.knownUsers = {
      get: id => readStored<KnownUser>(storage, this.#known(id), known => isKnownUser(known, id)),
      put: known => writeStored(storage, this.#known(known.userId), known),
    }
  }

  /** The person of a link whose devices have not been verified yet. */
  async expected(userId: string): Promise<ListedPerson | undefined> {
    const isExpected = ({ listHash }: Record<string, unknown>) =>
      typeof listHash === 'string' && HASH.test(listHash)
    const kept = await readStored<{ listHash: string }>(this.#storage, this.#expected(userId), isExpected)
    return kept && { userId: BigInt(userId), listHash: kept.listHash }
  }

  putExpected({ userId, listHash }: ListedPerson): Promise<void> {
    return writeStored(this.#storage, this.#expected(`${userId}`), { listHash })
  }

  forgetExpected(userId: string): Promise<void> {
    return writeStored(this.#storage, this.#expected(userId), null)
  }

  /** Proofs that the log has lied, the oldest first. */
  async evidence(): Promise<readonly Evidence[]> {
    const key = `evidence.${this.#scope}`
    const kept = await readStored<{ pairs: Evidence[] }>(this.#storage, key, ({ pairs }) =>
      Array.isArray(pairs),
    )
    return kept?.pairs ?? []
  }

  async addEvidence(pair: Evidence): Promise<void> {
    const pairs = await this.evidence()
    const isKept = pairs.length >= EVIDENCE_MAX || pairs.some(each => `${each}` === `${pair}`)
    if (!isKept) await writeStored(this.#storage, `evidence.${this.#scope}`, { pairs: [...pairs, pair] })
  }

  /** Where the checkpoint of the log or of its index is kept. */
  #checkpoint(origin: string): string {
    return `checkpoint.${this.#scope}${origin === this.origin ? '' : '.index'}`
  }

  #known(userId: string): string {
    return `known.${this.#scope}.${userId}`
  }

  #expected(userId: string): string {
    return `expected.${this.#scope}.${userId}`
  }
}

/** Its signature is verified by who reads it. */
function isCheckpoint({ note, pending }: Readonly<Record<string, unknown>>): boolean {
  return typeof note === 'string' && (pending === undefined || Array.isArray(pending))
}

function isKnownUser(known: Readonly<Record<string, unknown>>, userId: string): boolean {
  const { devices, events, list, question } = known as Partial<KnownUser>
  const isRead = Array.isArray(devices) && devices.every(each => typeof each?.keyHash === 'string')
  const isListed = list === undefined || (Number.isInteger(list?.index) && Number.isInteger(list.since?.seq))
  const isAsked =
    question === undefined || (typeof question?.kind === 'string' && HASH.test(question.listHash))
  return known.userId === userId && isRead && Array.isArray(events) && isListed && isAsked
}

/** Base64 of 32 octets. */
const HASH = /^[\w+/]{43}=$/
/** Each is proof enough. */
const EVIDENCE_MAX = 16

/**
 * Logs for tests below gRPC and VRF: devices with made-up hashes, batches as the log appender makes them, what a log of
 * given entries must hold by the naive tree, and a check of everything a store has.
 */

import { createHash } from 'node:crypto'
import type { LoggedIdentity } from '../../src/keyserver/identity-table.ts'
import type { LogBatch, LogMaker, LogStore } from '../../src/keyserver/log-store.ts'
import { type Checkpoint, openCheckpoint, signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatEntry } from '../../src/log/entry.ts'
import { EMPTY_ROOT } from '../../src/log/hash.ts'
import { TreeTail } from '../../src/log/integrate.ts'
import { formatVerifierKey, type SignerKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { STORE_FORM } from '../../src/store/engine/store-form.ts'
import { NaiveTree, naiveLeafHash } from './naive-tree.ts'
import { formatBundle, tilesBetween } from './tiles.ts'

/** The key every test log is signed with. */
export const SIGNER: SignerKey = signerKeyFromSeed('log.example/test', new Uint8Array(32).fill(7))

export const MAKER: LogMaker = {
  storeForm: STORE_FORM,
  vkey: formatVerifierKey(SIGNER),
  vrfPublicKey: 'none',
}

export interface Device {
  readonly userId: bigint
  readonly deviceId: bigint
  readonly vrfHash: Uint8Array
}

/** A key to be registered, or one that was. */
export interface DeviceKey {
  readonly device: Device
  readonly publicKey: string
}

/** Always the same for the same number: four devices to a user. */
export function deviceOf(number: number): Device {
  const vrfHash = new Uint8Array(createHash('sha512').update(`device ${number}`).digest())
  return { userId: BigInt(Math.floor(number / 4)), deviceId: BigInt(number % 4), vrfHash }
}

/** A public key of 32 bytes that says its number. */
export function keyOf(number: number): string {
  return Buffer.from(`key ${number}`.padEnd(32, '.')).toString('base64')
}

/** New keys of as many new devices, numbered from `first`. */
export function freshKeys(first: number, count: number): DeviceKey[] {
  return Array.from({ length: count }, (_, at) => ({
    device: deviceOf(first + at),
    publicKey: keyOf(first + at),
  }))
}

/** Makes a new log with its checkpoint of size 0. */
export function createLog(store: LogStore): Promise<void> {
  return store.create(MAKER, signCheckpoint({ treeSize: 0, rootHash: EMPTY_ROOT }, SIGNER))
}

/** A log's content after these entries; grows with the log. */
export class ExpectedLog {
  readonly #entries: Uint8Array[] = []
  readonly #leafHashes: Uint8Array[] = []
  readonly #identities: LoggedIdentity[] = []
  readonly #newest = new Map<string, { readonly device: Device; readonly index: number }>()
  readonly tree = new NaiveTree(this.#leafHashes)

  constructor(keys: readonly DeviceKey[] = []) {
    for (const key of keys) this.push(key)
  }

  get size(): number {
    return this.#entries.length
  }

  push({ device, publicKey }: DeviceKey): void {
    const entry = formatEntry(device.vrfHash, publicKey)
    const previousIndex = this.newestIndex(device)
    this.#newest.set(nameOf(device), { device, index: this.size })
    this.#identities.push({
      userId: device.userId,
      deviceId: device.deviceId,
      previousIndex,
      earlierKeys: previousIndex === undefined ? 0 : this.#identities[previousIndex]!.earlierKeys + 1,
    })
    this.#leafHashes.push(naiveLeafHash(entry))
    this.#entries.push(entry)
  }

  newestIndex(device: Device): number | undefined {
    return this.#newest.get(nameOf(device))?.index
  }

  entry(index: number): Uint8Array | undefined {
    return this.#entries[index]
  }

  identity(index: number): LoggedIdentity | undefined {
    return this.#identities[index]
  }

  /** Every device with a key in the log, and where its newest is. */
  newest(): Iterable<{ readonly device: Device; readonly index: number }> {
    return this.#newest.values()
  }

  /** The bytes of a hash tile, by the definition of tlog-tiles. */
  hashTile(level: number, index: number, width: number): Uint8Array {
    const leaves = 256 ** level
    const hashes = Array.from({ length: width }, (_, at) => {
      const start = (index * 256 + at) * leaves
      return this.tree.root(start, start + leaves)
    })
    return Buffer.concat(hashes)
  }

  bundle(index: number, width: number): Uint8Array {
    return formatBundle(this.#entries.slice(index * 256, index * 256 + width))
  }
}

/** Makes batches on top of what the store has, with indexes, earlier keys and a signature as the appender gives them. */
export class LogWriter {
  readonly #store: LogStore
  readonly #tail: TreeTail
  /** The log's content when all batches made so far are committed. */
  readonly expected: ExpectedLog

  /** `expected` must be what the store holds now. */
  constructor(store: LogStore, expected: ExpectedLog) {
    this.#store = store
    this.#tail = new TreeTail(store.openTail(expected.size))
    this.expected = expected
  }

  makeBatch(keys: readonly DeviceKey[]): LogBatch {
    const firstIndex = this.expected.size
    for (const key of keys) this.expected.push(key)
    const integration = this.#tail.integrate(keys.map((_, at) => this.expected.entry(firstIndex + at)!))
    const entries = keys.map(({ device }, at) => ({
      ...this.expected.identity(firstIndex + at)!,
      vrfHash: device.vrfHash,
    }))
    return { firstIndex, entries, integration, checkpoint: signCheckpoint(integration, SIGNER) }
  }

  append(keys: readonly DeviceKey[]): Promise<void> {
    return this.#store.append(this.makeBatch(keys))
  }
}

/**
 * All in which the store differs from `expected`: signed head, bundles, tiles, identities, newest indexes. The store
 * must have been opened (`openTail`).
 */
export function faultsOfStore(store: LogStore, expected: ExpectedLog): string[] {
  return [...headFaults(store, expected), ...treeFaults(store, expected), ...lookupFaults(store, expected)]
}

/** `openCheckpoint` of a test log's, remembering the last one: runs ask several times for the newest. */
export function openOwnCheckpoint(note: string): Checkpoint {
  if (lastOpened?.note !== note) lastOpened = { note, checkpoint: openCheckpoint(note, SIGNER) }
  return lastOpened.checkpoint
}

let lastOpened: { readonly note: string; readonly checkpoint: Checkpoint } | undefined

function headFaults(store: LogStore, expected: ExpectedLog): string[] {
  const head = store.head()
  if (head === undefined) return ['there is no head']
  const { treeSize, rootHash } = openOwnCheckpoint(head.checkpoint)
  const faults: string[] = []
  if (head.treeSize !== expected.size) faults.push(`head of size ${head.treeSize}, not ${expected.size}`)
  if (treeSize !== head.treeSize)
    faults.push(`checkpoint of size ${treeSize} under a head of ${head.treeSize}`)
  if (Buffer.compare(rootHash, expected.tree.root(0, expected.size)) !== 0) faults.push('signed root')
  return faults
}

function treeFaults(store: LogStore, expected: ExpectedLog): string[] {
  const faults: string[] = []
  for (const { level, index, width } of tilesBetween(0, expected.size)) {
    const isBundle = level === 'entries'
    const stored = isBundle ? store.bundleVolatile(index, width) : store.tileVolatile(level, index, width)
    const wanted = isBundle ? expected.bundle(index, width) : expected.hashTile(level, index, width)
    if (Buffer.compare(stored, wanted) !== 0) faults.push(`tile ${level}/${index}`)
  }
  return faults
}

function lookupFaults(store: LogStore, expected: ExpectedLog): string[] {
  const faults: string[] = []
  for (let index = 0; index < expected.size; index++) {
    if (!isSameIdentity(store.identity(index), expected.identity(index)))
      faults.push(`identity of leaf ${index}`)
  }
  if (store.identity(expected.size) !== undefined) faults.push('an identity beyond the tree')
  for (const { device, index } of expected.newest()) {
    const found = store.newestIndex(device.vrfHash)
    if (found !== index) faults.push(`newest index ${found} of a device whose newest entry is ${index}`)
  }
  return faults
}

function isSameIdentity(a: LoggedIdentity | undefined, b: LoggedIdentity | undefined): boolean {
  return (
    a !== undefined &&
    a.userId === b?.userId &&
    a.deviceId === b.deviceId &&
    a.previousIndex === b.previousIndex &&
    a.earlierKeys === b.earlierKeys
  )
}

function nameOf({ vrfHash }: Device): string {
  return Buffer.from(vrfHash).toString('latin1')
}

/**
 * The identity records against the entries: each names the newest earlier entry under the same VRF hash and counts the
 * earlier ones, and all records under one hash name one device. Only the VRF key tells whether that is the right
 * device: `VrfSample` asks it for some of them.
 */

import {
  BLOCK_RECORDS,
  EARLIER_KEYS_AT,
  type LoggedIdentity,
  PREVIOUS_AT,
  RECORD_BYTES,
  readRecord,
  writeRecord,
} from '../../keyserver/identity-table.ts'
import { LOG_TABLES } from '../../keyserver/log-store.ts'
import { VRF_HASH_BYTES } from '../../log/entry.ts'
import { equalHashes } from '../../log/hash.ts'
import { indexKey } from '../../store/engine/keys.ts'
import type { EntryBlock, HashRange } from './entry-block.ts'
import type { Fault, Findings } from './fault.ts'
import type { LeafSet, NewestKeys } from './newest-keys.ts'
import type { RawLog } from './raw-log.ts'

/** Every identity block must exist, with the length that the tree implies, and none beyond. */
export function checkIdentityBlocks(raw: RawLog, treeSize: number, findings: Findings): void {
  const blocks = Math.ceil(treeSize / BLOCK_RECORDS)
  for (let block = 0; block < blocks; block++) {
    const wanted = Math.min(BLOCK_RECORDS, treeSize - block * BLOCK_RECORDS) * RECORD_BYTES
    const length = raw.identityBlock(block)?.length
    if (length === wanted) continue
    const detail = length === undefined ? 'block is missing' : `block has ${length} bytes, not ${wanted}`
    const offset = length === undefined ? {} : { offset: Math.min(length, wanted) }
    report(findings, { key: `${block}`, ...offset, detail, isDerived: false })
  }
  for (const key of raw.keys(LOG_TABLES.identities)) {
    const isBlock = Buffer.compare(key, indexKey(0)) >= 0 && key.length === 6 && numberOf(key) < blocks
    if (isBlock) continue
    report(findings, { key: nameOf(key), detail: 'the tree has no such block', isDerived: false })
  }
}

/** Reads records one after the other, a block at a time. */
export class IdentityReader {
  readonly #raw: RawLog
  #block = -1
  #bytes: Uint8Array | undefined

  constructor(raw: RawLog) {
    this.#raw = raw
  }

  read(index: number): LoggedIdentity | undefined {
    const block = Math.floor(index / BLOCK_RECORDS)
    if (block !== this.#block) {
      this.#block = block
      this.#bytes = this.#raw.identityBlock(block)
    }
    const at = (index % BLOCK_RECORDS) * RECORD_BYTES
    return this.#bytes === undefined || at + RECORD_BYTES > this.#bytes.length
      ? undefined
      : readRecord(this.#bytes, at)
  }
}

export class IdentityCheck {
  readonly #findings: Findings
  readonly #newest: NewestKeys
  readonly #unsound: LeafSet
  readonly #records: IdentityReader
  readonly #earlierRecords: IdentityReader

  /** Fills `newest` as it goes. Judges no record that points to an entry of `unsound`. */
  constructor(raw: RawLog, newest: NewestKeys, unsound: LeafSet, findings: Findings) {
    this.#newest = newest
    this.#unsound = unsound
    this.#findings = findings
    this.#records = new IdentityReader(raw)
    this.#earlierRecords = new IdentityReader(raw)
  }

  /** Takes the bundles in order, and from each the sound entries in the range. */
  addBlock(block: EntryBlock, range: HashRange): void {
    for (let at = 0; at < block.count; at++) {
      const index = block.firstIndex + at
      const hashAt = at * VRF_HASH_BYTES
      const firstByte = block.vrfHashes[hashAt]!
      const isInRange = firstByte >= range.from && firstByte < range.to
      if (!isInRange || block.isSound[at] !== 1 || this.#unsound.has(index)) continue
      const slot = this.#newest.find(block.vrfHashes, hashAt)
      const expected: ExpectedRecord = {
        previousIndex: slot === undefined ? undefined : this.#newest.index(slot),
        earlierKeys: slot === undefined ? 0 : this.#newest.count(slot),
      }
      const earlierKeys = this.#checkRecord(index, expected)
      this.#newest.add(block.vrfHashes, hashAt, index, earlierKeys + 1)
    }
  }

  /** Returns how many earlier keys the entry has, for later entries to count on. */
  #checkRecord(index: number, expected: ExpectedRecord): number {
    const record = this.#records.read(index)
    // The short block has been reported.
    if (record === undefined) return expected.earlierKeys
    const { previousIndex, earlierKeys } = record
    if (previousIndex !== undefined && this.#unsound.has(previousIndex)) return earlierKeys
    if (previousIndex !== expected.previousIndex || earlierKeys !== expected.earlierKeys) {
      const isPrevious = previousIndex !== expected.previousIndex
      const detail = isPrevious
        ? `the entry before ${index} under its VRF hash is ${expected.previousIndex ?? 'none'}, not ${previousIndex ?? 'none'}`
        : `entry ${index} has ${expected.earlierKeys} before it under its VRF hash, not ${earlierKeys}`
      const from = isPrevious ? PREVIOUS_AT : EARLIER_KEYS_AT
      this.#report(index, record, { ...record, ...expected }, { from, detail, isDerived: true })
      this.#findings.correct({ kind: 'identity', index, ...expected })
    }
    if (expected.previousIndex !== undefined) this.#checkDevice(index, record, expected.previousIndex)
    return expected.earlierKeys
  }

  #checkDevice(index: number, record: LoggedIdentity, previousIndex: number): void {
    const earlier = this.#earlierRecords.read(previousIndex)
    if (earlier === undefined) return
    if (earlier.userId === record.userId && earlier.deviceId === record.deviceId) return
    const { userId, deviceId } = earlier
    const detail = `entries ${previousIndex} and ${index} have one VRF hash, but not one user and device`
    this.#report(index, record, { ...record, userId, deviceId }, { from: 0, detail, isDerived: false })
  }

  /** Names the first byte, from `from` in the record on, that differs from `expected`. */
  #report(
    index: number,
    record: LoggedIdentity,
    expected: LoggedIdentity,
    { from, ...fault }: Pick<Fault, 'detail' | 'isDerived'> & { readonly from: number },
  ): void {
    const [stored, wanted] = [bytesOf(record), bytesOf(expected)]
    let at = from
    while (at < RECORD_BYTES && stored[at] === wanted[at]) at++
    const offset = (index % BLOCK_RECORDS) * RECORD_BYTES + at
    report(this.#findings, { key: `${Math.floor(index / BLOCK_RECORDS)}`, offset, ...fault })
  }
}

interface ExpectedRecord {
  readonly previousIndex: number | undefined
  readonly earlierKeys: number
}

/** Gives the VRF hash of a user and device. */
export type HashIdentity = (userId: bigint, deviceId: bigint) => Uint8Array

/** Hashes the identities of some entries, spread over the log, and compares. */
export class VrfSample {
  readonly #hash: HashIdentity
  readonly #findings: Findings
  readonly #records: IdentityReader
  readonly #stride: number
  readonly #random: () => number
  #stretch = 0
  #nextIndex: number
  /** How many have been hashed. */
  looked = 0

  /** Samples one entry from each of `sampleMax` equal stretches, or every entry of a smaller log. */
  constructor(
    raw: RawLog,
    treeSize: number,
    { hash, sampleMax, random }: { hash: HashIdentity; sampleMax: number; random: () => number },
    findings: Findings,
  ) {
    this.#hash = hash
    this.#findings = findings
    this.#records = new IdentityReader(raw)
    this.#stride = Math.max(1, treeSize / sampleMax)
    this.#random = random
    this.#nextIndex = this.#draw()
  }

  addBlock(block: EntryBlock): void {
    for (; this.#nextIndex < block.firstIndex + block.width; this.#nextIndex = this.#draw()) {
      const at = this.#nextIndex - block.firstIndex
      const record = block.isSound[at] === 1 ? this.#records.read(this.#nextIndex) : undefined
      if (record === undefined) continue
      this.looked++
      const hash = block.vrfHashes.subarray(at * VRF_HASH_BYTES, (at + 1) * VRF_HASH_BYTES)
      if (equalHashes(this.#hash(record.userId, record.deviceId), hash)) continue
      const offset = (this.#nextIndex % BLOCK_RECORDS) * RECORD_BYTES
      this.#findings.report({
        check: 'vrf',
        table: LOG_TABLES.identities,
        key: `${Math.floor(this.#nextIndex / BLOCK_RECORDS)}`,
        offset,
        detail: `user and device of entry ${this.#nextIndex} do not have its VRF hash`,
        isDerived: false,
      })
    }
  }

  /** The next index: somewhere in the next stretch. */
  #draw(): number {
    return Math.floor((this.#stretch++ + this.#random()) * this.#stride)
  }
}

function report(findings: Findings, fault: Omit<Fault, 'check' | 'table'>): void {
  findings.report({ check: 'identities', table: LOG_TABLES.identities, ...fault })
}

function bytesOf(record: LoggedIdentity): Uint8Array {
  const bytes = Buffer.alloc(RECORD_BYTES)
  writeRecord(bytes, 0, record)
  return bytes
}

function numberOf(key: Uint8Array): number {
  return Buffer.from(key).readUIntBE(0, 6)
}

function nameOf(key: Uint8Array): string {
  return key.length === 6 ? `${numberOf(key)}` : Buffer.from(key).toString('hex')
}

/**
 * The check of a whole log as it is stored: every entry, every tile, the signed checkpoint, the identity records, the
 * lookup table and the index, at one moment. It names the first wrong byte of each, and continues with the rest.
 *
 * Memory stays flat, whatever the log's size: it checks identities, lookup rows and the index's map for one part of all hashes at a
 * time, and reads the entries again for each part.
 */

import { encodeBase64 } from '#primitives'
import { equalHashes, type Hash } from '../../log/hash.ts'
import { TILE_WIDTH } from '../../log/tile.ts'
import { hasIndex, IndexCheck } from '../index/index-check.ts'
import { EntryBlock, rangesFor } from './entry-block.ts'
import {
  CHECKS,
  type CheckOutcome,
  type Correction,
  Findings,
  type LogCheckName,
  type LogReport,
} from './fault.ts'
import {
  checkBundleKeys,
  checkMaker,
  judgeHead,
  type KnownKeys,
  LOG_HEAD,
  readHead,
  sizeFromBundles,
} from './head-check.ts'
import { checkIdentityBlocks, type HashIdentity, IdentityCheck, VrfSample } from './identity-check.ts'
import { LookupCheck } from './lookup-check.ts'
import { LeafSet, NewestKeys } from './newest-keys.ts'
import type { RawLog } from './raw-log.ts'
import { TreeCheck } from './tree-check.ts'

export interface LogCheckOptions {
  readonly known?: KnownKeys
  /** The VRF of the log's key, to hash the identities of at most `sampleMax` entries again. `random` gives [0, 1). */
  readonly vrf?: {
    readonly hash: HashIdentity
    readonly sampleMax: number
    readonly random: () => number
  }
  /** Called and awaited every few bundles; `done` is from 0 to 1. */
  readonly onProgress?: (done: number) => Promise<void> | void
  /** Called for each change that would put a derived row right. */
  readonly onCorrection?: (correction: Correction) => void
  /** For tests: how many entries' hashes are in memory at a time. */
  readonly entriesPerRange?: number
}

/** Checks a log that has a maker record or a checkpoint at all. */
export async function checkLog(raw: RawLog, options: LogCheckOptions = {}): Promise<LogReport> {
  return new LogCheck(raw, options).run()
}

/** Parts of the check that look at whole blocks. */
interface FullReading {
  readonly tree: TreeCheck
  readonly unsound: LeafSet
  readonly sample: VrfSample | undefined
}

class LogCheck {
  readonly #raw: RawLog
  readonly #options: LogCheckOptions
  readonly #findings: Findings
  readonly #block = new EntryBlock()

  constructor(raw: RawLog, options: LogCheckOptions) {
    this.#raw = raw
    this.#options = options
    this.#findings = new Findings(options.onCorrection)
  }

  async run(): Promise<LogReport> {
    const { known = {}, vrf } = this.#options
    const raw = this.#raw
    const findings = this.#findings
    const verifier = checkMaker(raw, known, findings)
    const head = readHead(raw, LOG_HEAD, verifier)
    const treeSize = head.verified?.treeSize ?? sizeFromBundles(raw)
    const signedRoot = (head.verified ?? head.claimed)?.rootHash
    const tree = new TreeCheck(raw, treeSize, signedRoot, findings)
    const sample = vrf === undefined ? undefined : new VrfSample(raw, treeSize, vrf, findings)
    const unsound = new LeafSet(treeSize)
    checkBundleKeys(raw, treeSize, findings)
    checkIdentityBlocks(raw, treeSize, findings)

    const rows = await this.#readAll(treeSize, { tree, unsound, sample })
    const rootHash = tree.finish()
    judgeHead(raw, head, { treeSize, rootHash }, findings)
    const isSigned = isProven(rootHash, head.verified?.rootHash)
    const log = {
      verifier,
      treeSize,
      isProven: isSigned && !findings.has('entries'),
      areTilesWhole: isSigned && !findings.has('tiles'),
    }
    const index = await new IndexCheck(raw, log, findings).run(this.#entriesPerRange, async done =>
      this.#options.onProgress?.(LOG_SHARE + (1 - LOG_SHARE) * done),
    )
    return {
      treeSize,
      rootHash: rootHash === undefined ? '' : encodeBase64(rootHash),
      isProven: isSigned,
      outcomes: [...this.#outcomes(treeSize, rows, sample?.looked), ...index],
    }
  }

  get #entriesPerRange(): number {
    return this.#options.entriesPerRange ?? ENTRIES_PER_RANGE
  }

  /** Returns how many lookup rows there are. Its memory is free again before the index is looked at. */
  async #readAll(treeSize: number, reading: FullReading): Promise<number> {
    const raw = this.#raw
    const { unsound } = reading
    const ranges = rangesFor(treeSize, this.#entriesPerRange)
    const share = hasIndex(raw) ? LOG_SHARE : 1
    const lookup = new LookupCheck(raw, treeSize, unsound, this.#findings)
    const newest = new NewestKeys(treeSize / ranges.length)
    for (const [pass, range] of ranges.entries()) {
      newest.clear()
      const identities = new IdentityCheck(raw, newest, unsound, this.#findings)
      await this.#eachBlock(treeSize, (share * pass) / ranges.length, share / ranges.length, index => {
        if (pass === 0) this.#readFully(index, treeSize, reading)
        else this.#block.readRange(raw, index, treeSize, range)
        identities.addBlock(this.#block, range)
      })
      lookup.checkRange(range, newest)
    }
    lookup.finish()
    return lookup.rows
  }

  #readFully(index: number, treeSize: number, { tree, unsound, sample }: FullReading): void {
    const block = this.#block
    block.read(this.#raw, index, treeSize, this.#findings)
    tree.addBlock(block)
    for (let at = 0; at < block.width; at++) if (block.isSound[at] !== 1) unsound.add(block.firstIndex + at)
    sample?.addBlock(block)
  }

  async #eachBlock(
    treeSize: number,
    done: number,
    share: number,
    visit: (index: number) => void,
  ): Promise<void> {
    const blocks = Math.ceil(treeSize / TILE_WIDTH)
    for (let index = 0; index < blocks; index++) {
      visit(index)
      if (index % BLOCKS_PER_PROGRESS === 0) await this.#options.onProgress?.(done + (share * index) / blocks)
    }
    await this.#options.onProgress?.(done + share)
  }

  #outcomes(treeSize: number, rows: number, sampled: number | undefined): CheckOutcome[] {
    const looked: Record<LogCheckName, string> = {
      maker: 'the record of who made the log',
      checkpoint: 'signature, size and root of the stored checkpoint',
      entries: `${treeSize} entries: their form, and their leaf hashes in the tree`,
      tiles: `the hash tiles of ${treeSize} entries, computed anew`,
      identities: `${treeSize} identity records: earlier keys of each device`,
      lookup: `${rows} lookup rows, and whether every newest entry is found`,
      vrf: `${sampled ?? 0} identities, hashed anew with the VRF key`,
    }
    return CHECKS.map(check =>
      check === 'vrf' && sampled === undefined
        ? { check, ok: null, detail: 'not checked without the VRF key', faults: 0, lasting: 0 }
        : this.#findings.outcome(check, looked[check]),
    )
  }
}

function isProven(rootHash: Hash | undefined, signedRoot: Hash | undefined): boolean {
  return rootHash !== undefined && signedRoot !== undefined && equalHashes(rootHash, signedRoot)
}

/** 2^20 keys in 2^21 slots of 27 bytes are 57 MB. */
const ENTRIES_PER_RANGE = 2 ** 20
const BLOCKS_PER_PROGRESS = 64
/** The log's part of the progress, where there is an index. */
const LOG_SHARE = 0.6

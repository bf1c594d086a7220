/** `--watch FILE`: VRF hashes to watch: their entries are reported as they appear in the log, each once. */

import { readFileSync, statSync } from 'node:fs'
import { messageOf } from '../../src/errors.ts'
import { decodeBase64 } from '../../src/log/base64.ts'
import { VRF_HASH_BYTES } from '../../src/log/entry.ts'
import { replaceDurably } from '../support/checkpoint-state.ts'
import { type FindingFacts, unchecked } from './finding.ts'
import type { HashIndex } from './hash-index.ts'

/** A passed check of `watch`: `index` is there for a new entry, and absent for what a hash has when its watch begins. */
export interface Watched {
  readonly detail: string
  readonly facts: FindingFacts
}

/**
 * Gives the entries of the verified tree that are new under a hash of the file, and for each hash that is new in the file the
 * entries that it has. Reports are remembered beside the state; a crash repeats the last reports. Throws `AuditFailure`.
 */
export function* watchHashes(file: string, stateFile: string, index: HashIndex): Generator<Watched> {
  const labels = readWatchFile(file)
  const reported = readReported(stateFile)
  const size = index.verifiedSize
  const starts = new Map([...labels.keys()].map(hash => [hash, Math.min(reported[hash] ?? 0, size)]))
  const known = new Map<string, { entries: number; newest: number }>()
  for (const [hash, at] of index.entriesUnder([...starts.keys()], Math.min(size, ...starts.values()))) {
    const label = labels.get(hash)!
    if (reported[hash] === undefined)
      known.set(hash, { entries: (known.get(hash)?.entries ?? 0) + 1, newest: at })
    else if (at >= starts.get(hash)!)
      yield {
        detail: `a new entry under ${label}: entry ${at}`,
        facts: { index: `${at}`, vrfHash: hash, label },
      }
  }
  for (const [hash, label] of labels) {
    if (reported[hash] !== undefined) continue
    const { entries, newest } = known.get(hash) ?? { entries: 0, newest: 0 }
    const last = entries === 0 ? '' : `, the newest is entry ${newest}`
    yield {
      detail: `the watch of ${label} begins: ${entries} entries${last}`,
      facts: { vrfHash: hash, label },
    }
  }
  const next = JSON.stringify(Object.fromEntries([...labels.keys()].map(hash => [hash, size])))
  if (next === JSON.stringify(reported)) return
  try {
    replaceDurably(reportedFile(stateFile), `${next}\n`)
  } catch (error) {
    throw unchecked('watch', `what was reported can't be written: ${messageOf(error)}`)
  }
}

/** The label of each hash, itself where it has none. Throws `AuditFailure` for a file that is not one. */
function readWatchFile(file: string): ReadonlyMap<string, string> {
  const labels = new Map<string, string>()
  for (const [at, line] of readText(file).split('\n').entries()) {
    const [hash = '', ...label] = line.trim().split(/\s+/)
    if (hash === '' || hash.startsWith('#')) continue
    if (!isVrfHash(hash))
      throw unchecked('watch', `${file}, line ${at + 1}: not a VRF hash in base64`, { line: at + 1 })
    labels.set(hash, label.length === 0 ? hash : label.join(' '))
  }
  if (labels.size > HASHES_MAX) throw unchecked('watch', `${file} has more than ${HASHES_MAX} hashes`)
  return labels
}

export function isVrfHash(text: string): boolean {
  try {
    return decodeBase64(text).length === VRF_HASH_BYTES
  } catch {
    return false
  }
}

function readText(file: string): string {
  try {
    if (statSync(file).size <= FILE_BYTES_MAX) return readFileSync(file, 'utf8')
  } catch (error) {
    throw unchecked('watch', `${file} can't be read: ${messageOf(error)}`)
  }
  throw unchecked('watch', `${file} is too large`)
}

/** How far each hash was reported. A file of no use is one that is not there: every watch begins again. */
function readReported(stateFile: string): Readonly<Record<string, number>> {
  try {
    const reported: unknown = JSON.parse(readFileSync(reportedFile(stateFile), 'utf8'))
    const isOne =
      typeof reported === 'object' && reported !== null && Object.values(reported).every(Number.isSafeInteger)
    return isOne ? (reported as Record<string, number>) : {}
  } catch {
    return {}
  }
}

function reportedFile(stateFile: string): string {
  return `${stateFile}.watched`
}

const HASHES_MAX = 10_000
const FILE_BYTES_MAX = 4 * 1024 * 1024

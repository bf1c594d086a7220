/**
 * Watches the changes of a whole application: each is rehearsed with a fault at every one of its writes, and after each
 * fault every row of the store must be as it was. Knows which lines of the sources ask for changes, to tell which of them
 * have not been seen.
 */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import type { TestWorld } from './application.ts'
import { sourceFiles } from './imports.ts'

/** A change that wrote something. */
export interface ProvenChange {
  /** The lines that asked for it, as `src/api/accounts/profile:55`. */
  readonly sites: readonly string[]
  readonly tables: ReadonlySet<string>
}

export class ProvenChanges {
  /** Lines that asked for a change, also for one that writes nothing and is not rehearsed. */
  readonly sitesSeen = new Set<string>()
  #writes = 0
  #injected = 0
  #seen: ProvenChange[] = []

  constructor({ database, rehearsals }: Pick<TestWorld, 'database' | 'rehearsals'>) {
    rehearsals.faultsMax = Number.POSITIVE_INFINITY
    rehearsals.faultEvery = 1
    rehearsals.fingerprint = fingerprintOf(database)
    const sitesOf = new WeakMap<object, readonly string[]>()
    const change = database.change.bind(database)
    database.change = (write, atMs) => {
      const sites = sitesOfStack()
      for (const site of sites) this.sitesSeen.add(site)
      sitesOf.set(write, sites)
      return change(write, atMs)
    }
    rehearsals.onRehearsed = ({ write, rows, writes, injected }) => {
      this.#writes += writes
      this.#injected += injected
      const sites = sitesOf.get(write) ?? []
      this.#seen.push({ sites, tables: new Set(rows.map(({ name }) => name.split(' ')[0]!)) })
    }
  }

  /** Takes the changes since the last call. */
  take(): readonly ProvenChange[] {
    return this.#seen.splice(0)
  }

  /** Writes of all changes, and the faults that were injected into them. */
  get counts(): { readonly writes: number; readonly injected: number } {
    return { writes: this.#writes, injected: this.#injected }
  }
}

/** Every line of the server that asks for a change. */
export function changeSites(): string[] {
  // By the sources: the compiled form of a moved source still lies there.
  return ['src', 'actors']
    .flatMap(sourceFiles)
    .filter(path => !path.endsWith('.d.ts'))
    .flatMap(path => sitesIn(path.replace(/\.ts$/, SUFFIX)))
}

function sitesIn(path: string): string[] {
  const lines = readFileSync(new URL(path, ROOT), 'utf8').split('\n')
  return lines.flatMap((line, at) =>
    ASKS_FOR_CHANGE.test(line) && !COMMENT.test(line) ? [siteOf(path, at + 1)] : [],
  )
}

/** Lines below this one that ask for a change. */
function sitesOfStack(): string[] {
  const { prepareStackTrace, stackTraceLimit } = Error
  Error.stackTraceLimit = FRAMES_MAX
  // The places in the files that run, which source maps would turn into those of others.
  Error.prepareStackTrace = (_, frames) => frames
  const frames = new Error().stack as unknown as NodeJS.CallSite[]
  Object.assign(Error, { prepareStackTrace, stackTraceLimit })
  const sites = frames.map(frame => {
    const file = frame.getFileName() ?? ''
    if (!file.startsWith(ROOT.href)) return ''
    return siteOf(file.slice(ROOT.href.length), frame.getLineNumber()!)
  })
  return sites.filter(site => SITES.has(site))
}

function siteOf(path: string, line: number): string {
  return `${path.replace(/\.[jt]s$/, '')}:${line}`
}

/** A digest of every row of every table, also of those that the running change has written. */
function fingerprintOf(database: LmdbStore): () => string {
  const tables = database.tableNames().map(name => database.storedRows(name))
  return () => {
    const digest = createHash('sha1')
    for (const table of tables) {
      for (const { key, value } of table.getRange({})) digest.update(key).update(value)
    }
    return digest.digest('base64')
  }
}

/** The folder of the files that run: sources, or their compiled forms. */
const ROOT = new URL('../../', import.meta.url)
/** Of the files that run. */
const SUFFIX = import.meta.url.slice(-3)
const ASKS_FOR_CHANGE =
  /(?:database|#store)\.change\(|(?:\brequest\.|[^.\w])commit\(\w+ =>|idempotence\.commit\(/
const COMMENT = /^\s*(?:\*|\/)/
const FRAMES_MAX = 40
const SITES: ReadonlySet<string> = new Set(changeSites())

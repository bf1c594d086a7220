/** Where a log is read: at its own prefix, as other readers show it, and at mirrors, which have tiles only. */

import type { TreeHead } from '../../src/client/tile-consistency.ts'
import { type HttpLimits, HttpSource } from './http-source.ts'
import { firstOf, keepingRecent, LogReader, type TileReader } from './log-reader.ts'

export class LogSources {
  readonly source: HttpSource
  readonly own: LogReader
  readonly gossip: readonly LogReader[]
  readonly mirrors: readonly LogReader[]
  readonly #others: readonly HttpSource[]
  #tiles: TileReader

  constructor(
    url: URL,
    gossip: readonly URL[],
    mirrors: readonly URL[],
    stop: AbortSignal,
    limits: HttpLimits | undefined,
  ) {
    const sourceOf = (prefix: URL) => new HttpSource(prefix, FILES_AT_ONCE, stop, limits)
    this.source = sourceOf(url)
    this.own = new LogReader(this.source)
    this.#others = [...gossip, ...mirrors].map(sourceOf)
    const readers = this.#others.map(source => new LogReader(source))
    this.gossip = readers.slice(0, gossip.length)
    this.mirrors = readers.slice(gossip.length)
    this.#tiles = this.#tilesAnew()
  }

  /** Files of the log, or of a mirror where the log has none. Recent files of this look are not asked for again. */
  get tiles(): TileReader {
    return this.#tiles
  }

  /** For where a file of the log is garbled. */
  get tilesOfMirrors(): TileReader {
    return firstOf([...this.mirrors, this.own])
  }

  /** Forgets the files of the last look: a garbled one may be good now. */
  begin(): void {
    this.#tiles = this.#tilesAnew()
  }

  /** The log has signed a tree of that size. */
  grow({ treeSize }: Pick<TreeHead, 'treeSize'>): void {
    for (const log of [this.own, ...this.gossip, ...this.mirrors]) log.grow(treeSize)
  }

  /** Where tiles are asked for to compare what `url` shows, in turn. */
  comparing(url: string | undefined): readonly LogReader[] {
    const all = [this.own, ...this.gossip, ...this.mirrors]
    return [...all.filter(log => log.url === url), ...all.filter(log => log.url !== url)]
  }

  close(): void {
    for (const source of [this.source, ...this.#others]) source.close()
  }

  #tilesAnew(): TileReader {
    return keepingRecent(firstOf([this.own, ...this.mirrors]))
  }
}

/** Enough to hide a long way to the server; a megabyte with keys of 32 bytes. */
export const FILES_AT_ONCE = 16

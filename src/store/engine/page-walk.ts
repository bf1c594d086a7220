/**
 * The pages of a store, walked by their bytes and without LMDB, which ends the process over some damaged pages: every
 * page of every table, and the list of free pages, must be what LMDB relies on. What a row holds is not looked at.
 *
 * The file must not change during the walk, or a reader must keep this moment's pages from being reused.
 */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { SignalError } from '../../errors.ts'

export interface PageWalk {
  readonly pages: number
  /** Rows of all tables that were walked. */
  readonly rows: number
  /** Whether all of it was walked. */
  readonly isWhole: boolean
}

/**
 * Throws `CHECKPOINT_INVALID` with a sentence that names the first damaged page. `mayGoOn` is asked every few pages: whether
 * there is time.
 */
export function walkPages(path: string, mayGoOn = () => true): PageWalk {
  const descriptor = openSync(path, 'r')
  try {
    return new Walk(descriptor, path, mayGoOn).run()
  } finally {
    closeSync(descriptor)
  }
}

/** The use of a store's pages. */
export interface StoreSpace {
  readonly pages: number
  readonly freePages: number
  /** The last transaction's. */
  readonly transaction: number
}

/** Reads the list of free pages alone. Throws as `walkPages`. */
export function readSpace(path: string): StoreSpace {
  const descriptor = openSync(path, 'r')
  try {
    return new Walk(descriptor, path, () => true).space()
  } finally {
    closeSync(descriptor)
  }
}

/** `MDB_db`, in mdb.c: where the tree of a table begins, and what is in it. */
interface Tree {
  readonly table: string
  readonly depth: number
  readonly branches: number
  readonly leaves: number
  readonly overflows: number
  readonly entries: number
  readonly root: number
}

interface Counts {
  branches: number
  leaves: number
  overflows: number
  entries: number
}

/** The rows of a tree: those of a table, the tables themselves, or the lists of free pages. */
type Kind = 'rows' | 'tables' | 'free'

class Walk {
  readonly #descriptor: number
  readonly #path: string
  readonly #mayGoOn: () => boolean
  readonly #seen: Uint8Array
  readonly #pageBytes: number
  readonly #lastPage: number
  readonly #filePages: number
  readonly #free: Tree
  readonly #main: Tree
  readonly #tables: Tree[] = []
  readonly #transaction: number
  #pages = 0
  #freePages = 0
  #hasTime = true

  constructor(descriptor: number, path: string, mayGoOn: () => boolean) {
    this.#descriptor = descriptor
    this.#path = path
    this.#mayGoOn = mayGoOn
    const meta = this.#newestMeta()
    this.#pageBytes = meta.readUInt32LE(FREE_TREE_AT)
    this.#free = treeAt(meta, FREE_TREE_AT, 'the list of free pages')
    this.#main = treeAt(meta, MAIN_TREE_AT, 'the list of tables')
    this.#lastPage = numberAt(meta, LAST_PAGE_AT)
    this.#transaction = numberAt(meta, TRANSACTION_AT)
    this.#filePages = Math.floor(fstatSync(descriptor).size / this.#pageBytes)
    if (this.#lastPage >= PAGES_MAX) throw this.#damaged(0, 'it names a last page that no store has')
    this.#seen = new Uint8Array(Math.ceil((this.#lastPage + 1) / 8))
  }

  run(): PageWalk {
    this.#walkTree(this.#free, 'free')
    this.#walkTree(this.#main, 'tables')
    // The small ones first, so that a walk that is cut short has most of them.
    const sizeOf = ({ branches, leaves, overflows }: Tree) => branches + leaves + overflows
    for (const tree of this.#tables.sort((a, b) => sizeOf(a) - sizeOf(b))) this.#walkTree(tree, 'rows')
    const rows = this.#tables.reduce((sum, { entries }) => sum + entries, 0)
    return { pages: this.#pages, rows, isWhole: this.#hasTime }
  }

  space(): StoreSpace {
    this.#walkTree(this.#free, 'free')
    return { pages: this.#lastPage + 1, freePages: this.#freePages, transaction: this.#transaction }
  }

  /** Read again until both are the same twice: a server may be writing one of them. */
  #newestMeta(): Buffer {
    for (let before = Buffer.alloc(0); ; ) {
      const head = this.#readBytes(0, META_BYTES)
      const pageBytes = head.readUInt32LE(FREE_TREE_AT)
      const other = this.#readBytes(pageBytes, META_BYTES)
      const both = Buffer.concat([head, other])
      if (both.equals(before))
        return numberAt(other, TRANSACTION_AT) > numberAt(head, TRANSACTION_AT) ? other : head
      before = both
    }
  }

  #walkTree(tree: Tree, kind: Kind): void {
    if (!this.#hasTime) return
    const { table, root, depth } = tree
    const counts: Counts = { branches: 0, leaves: 0, overflows: 0, entries: 0 }
    if (root === NO_PAGE) {
      if (tree.entries !== 0) throw this.#damaged(0, `${table} has no pages, and ${tree.entries} rows`)
      return
    }
    if (depth < 1 || depth > DEPTH_MAX) throw this.#damaged(root, `${table} is ${depth} pages deep`)
    this.#walkPage(tree, kind, root, 1, undefined, undefined, counts)
    if (!this.#hasTime) return
    for (const name of ['branches', 'leaves', 'overflows', 'entries'] as const) {
      if (counts[name] === tree[name]) continue
      throw this.#damaged(root, `${table} has ${counts[name]} ${name}, and says ${tree[name]}`)
    }
  }

  /** Its keys lie from `low` on and below `high`. */
  #walkPage(
    tree: Tree,
    kind: Kind,
    number: number,
    level: number,
    low: Buffer | undefined,
    high: Buffer | undefined,
    counts: Counts,
  ): void {
    this.#pages++
    if (this.#pages % PAGES_PER_QUESTION === 0 && !this.#mayGoOn()) this.#hasTime = false
    if (!this.#hasTime) return
    const { table, depth } = tree
    const page = this.#readPage(number, table)
    const isLeaf = level === depth
    if (page.readUInt16LE(FLAGS_AT) !== (isLeaf ? LEAF : BRANCH)) {
      throw this.#damaged(number, `it is no ${isLeaf ? 'leaf' : 'branch'} of ${table}`)
    }
    if (isLeaf) counts.leaves++
    else counts.branches++
    const nodes = this.#nodesOf(page, number, table, isLeaf)
    this.#assertOrder(nodes, kind, number, table, isLeaf, low, high)
    for (const [at, node] of nodes.entries()) {
      if (isLeaf) this.#walkRow(tree, kind, node, number, counts)
      else {
        const [from, to] = [at === 0 ? low : node.key, nodes[at + 1]?.key ?? high]
        this.#walkPage(tree, kind, node.page, level + 1, from, to, counts)
      }
    }
  }

  #nodesOf(page: Buffer, number: number, table: string, isLeaf: boolean): Node[] {
    const [lower, upper] = [page.readUInt16LE(LOWER_AT), page.readUInt16LE(UPPER_AT)]
    const room = this.#pageBytes - HEADER_BYTES
    const count = lower / 2
    const isBounded = lower % 2 === 0 && lower <= upper && upper <= room && count >= (isLeaf ? 1 : 2)
    if (!isBounded) throw this.#damaged(number, `its bounds are wrong, in ${table}`)
    const nodes: Node[] = []
    for (let at = 0; at < count; at++) {
      const offset = page.readUInt16LE(HEADER_BYTES + 2 * at)
      const isInside = offset >= upper && offset + NODE_BYTES <= room
      const node = isInside ? nodeAt(page, HEADER_BYTES + offset, isLeaf) : undefined
      if (node === undefined) throw this.#damaged(number, `row ${at} lies outside it, in ${table}`)
      nodes.push(node)
    }
    let end = 0
    for (const { at, bytes } of nodes.toSorted((a, b) => a.at - b.at)) {
      if (at < end) throw this.#damaged(number, `two rows lie over each other, in ${table}`)
      end = at + bytes
    }
    return nodes
  }

  #assertOrder(
    nodes: readonly Node[],
    kind: Kind,
    number: number,
    table: string,
    isLeaf: boolean,
    low: Buffer | undefined,
    high: Buffer | undefined,
  ): void {
    const compare = kind === 'free' ? compareNumbers : Buffer.compare
    // The first key of a branch is not used, and mostly empty.
    let last = isLeaf ? undefined : low
    for (const { key } of isLeaf ? nodes : nodes.slice(1)) {
      if (kind === 'free' && key.length !== 8) throw this.#damaged(number, `a key of ${table} is no number`)
      const isBelow =
        last === undefined ? low !== undefined && compare(key, low) < 0 : compare(key, last) <= 0
      if (isBelow || (high !== undefined && compare(key, high) >= 0)) {
        throw this.#damaged(number, `its keys are not in order, in ${table}`)
      }
      last = key
    }
  }

  #walkRow({ table }: Tree, kind: Kind, node: Node, number: number, counts: Counts): void {
    counts.entries++
    const isTable = node.flags === SUB_TREE && kind === 'tables' && node.dataBytes === TREE_BYTES
    if (isTable)
      return void this.#tables.push(
        treeAt(node.data, 0, `table ${node.key.toString('latin1').replace(/\0$/, '')}`),
      )
    if (node.flags !== 0 && node.flags !== BIG)
      throw this.#damaged(number, `a row is of no known kind, in ${table}`)
    const value = node.flags === BIG ? this.#walkOverflow(node, table, kind, counts) : node.data
    if (kind === 'free') this.#walkFree(value!, number)
  }

  /** The value is read where it is needed here. */
  #walkOverflow(node: Node, table: string, kind: Kind, counts: Counts): Buffer | undefined {
    const first = numberAt(node.data, 0)
    const page = this.#readPage(first, table)
    const pages = Math.floor((HEADER_BYTES - 1 + node.dataBytes) / this.#pageBytes) + 1
    if (page.readUInt16LE(FLAGS_AT) !== OVERFLOW || page.readUInt32LE(LOWER_AT) !== pages) {
      throw this.#damaged(first, `it does not begin a long row of ${table}`)
    }
    for (let at = 1; at < pages; at++) this.#note(first + at, table)
    counts.overflows += pages
    if (kind !== 'free') return undefined
    return this.#readBytes(first * this.#pageBytes + HEADER_BYTES, node.dataBytes)
  }

  /** A count, then page numbers; a negative one says how many pages follow from the next one on. */
  #walkFree(list: Buffer, number: number): void {
    const count = list.length >= 8 ? numberAt(list, 0) : -1
    if (count < 0 || (count + 1) * 8 > list.length)
      throw this.#damaged(number, 'its list of free pages is cut off')
    for (let at = 1; at <= count; at++) {
      const entry = list.readBigInt64LE(8 * at)
      if (entry === 0n) continue
      const pages = entry < 0n ? -entry : 1n
      if (entry < 0n) at++
      const first = entry < 0n && at <= count ? list.readBigInt64LE(8 * at) : entry
      if (first < 2n || first + pages - 1n > BigInt(this.#lastPage)) {
        throw this.#damaged(number, 'it lists a free page that the store does not have')
      }
      for (let page = Number(first); page < Number(first + pages); page++) this.#note(page, 'the free pages')
      this.#freePages += Number(pages)
    }
  }

  #readPage(number: number, table: string): Buffer {
    this.#note(number, table)
    if (number >= this.#filePages) throw this.#damaged(number, `the file ends before it; it is in ${table}`)
    const page = this.#readBytes(number * this.#pageBytes, this.#pageBytes)
    if (numberAt(page, 0) !== number)
      throw this.#damaged(number, `it is not the page that ${table} has there`)
    return page
  }

  /** A page belongs to one thing. */
  #note(number: number, table: string): void {
    if (!(number >= 2 && number <= this.#lastPage))
      throw this.#damaged(number, `${table} names it, and it is not there`)
    const [byte, bit] = [number >> 3, 1 << (number & 7)]
    if ((this.#seen[byte]! & bit) !== 0) throw this.#damaged(number, `it is in use twice, in ${table} too`)
    this.#seen[byte]! |= bit
  }

  #readBytes(position: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    if (readSync(this.#descriptor, bytes, 0, length, position) !== length) {
      throw this.#damaged(Math.floor(position / (this.#pageBytes || 4_096)), 'the file ends before it')
    }
    return bytes
  }

  #damaged(page: number, what: string): SignalError {
    const advice = 'look with fsck, and restore a backup'
    return new SignalError(
      'CHECKPOINT_INVALID',
      `page ${page} of ${this.#path} is damaged: ${what}; ${advice}`,
    )
  }
}

/** `MDB_node`, in mdb.c: a key with a value, or with the page where greater keys are. */
interface Node {
  readonly key: Buffer
  readonly flags: number
  /** In a branch. */
  readonly page: number
  readonly dataBytes: number
  /** In a leaf: the value, or the number of the page where it begins. */
  readonly data: Buffer
  /** Where it lies in the page. */
  readonly at: number
  readonly bytes: number
}

/** Undefined where it lies beyond the page. */
function nodeAt(page: Buffer, at: number, isLeaf: boolean): Node | undefined {
  const low = page.readUInt32LE(at)
  const [flags, keyBytes] = [page.readUInt16LE(at + 4), page.readUInt16LE(at + 6)]
  const keyAt = at + NODE_BYTES
  const dataAt = keyAt + keyBytes
  const stored = !isLeaf ? 0 : flags === BIG ? 8 : low
  if (dataAt + stored > page.length) return undefined
  return {
    key: page.subarray(keyAt, dataAt),
    flags,
    page: isLeaf ? NO_PAGE : low + flags * 2 ** 32,
    dataBytes: isLeaf ? low : 0,
    data: page.subarray(dataAt, dataAt + stored),
    at,
    bytes: NODE_BYTES + keyBytes + stored,
  }
}

function treeAt(bytes: Buffer, at: number, table: string): Tree {
  const [branches, leaves, overflows, entries, root] = [8, 16, 24, 32, 40].map(offset =>
    numberAt(bytes, at + offset),
  )
  return {
    table,
    depth: bytes.readUInt16LE(at + 6),
    branches: branches!,
    leaves: leaves!,
    overflows: overflows!,
    entries: entries!,
    root: root!,
  }
}

/** A number of 64 bits; an impossible one becomes another impossible one. */
function numberAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32
}

function compareNumbers(one: Buffer, other: Buffer): number {
  return numberAt(one, 0) - numberAt(other, 0)
}

/** `MDB_meta` behind the header of its page, in mdb.c. */
const FREE_TREE_AT = 48
const MAIN_TREE_AT = 96
const LAST_PAGE_AT = 144
const TRANSACTION_AT = 152
const META_BYTES = 168
const TREE_BYTES = 48
/** `MDB_page`: number, transaction, padding, flags, then the bounds of the free space. */
const FLAGS_AT = 18
const LOWER_AT = 20
const UPPER_AT = 22
const HEADER_BYTES = 24
const BRANCH = 1
const LEAF = 2
const OVERFLOW = 4
/** `MDB_node`: eight bytes before the key; a value on pages of its own, or a table. */
const NODE_BYTES = 8
const BIG = 1
const SUB_TREE = 2
const NO_PAGE = 2 ** 64
/** `CURSOR_STACK`. */
const DEPTH_MAX = 32
/** 16 TiB of pages of 4 KiB: any number above is no page's. */
const PAGES_MAX = 2 ** 32
const PAGES_PER_QUESTION = 256

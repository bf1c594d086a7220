/**
 * Logs made by a test, honest or not, as the files they serve; and a small HTTP server for them that can misbehave.
 * To play a forger with the right key, or a bad network, change a map or a handler.
 */

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatEntry } from '../../src/log/entry.ts'
import { type Integration, TreeTail } from '../../src/log/integrate.ts'
import { type SignerKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { formatTilePath } from '../../src/log/tile.ts'
import { RightEdge } from '../../src/log/tree.ts'
import { tilesBetween } from './tiles.ts'

/** The key of every log here. */
export const SIGNER = signerKeyFromSeed('example.org/log', new Uint8Array(32).fill(1))

/** Bytes by their path, without a leading slash. Tests may change them. */
export type LogFiles = Map<string, Uint8Array>

/** Entry `index` of the usual log; another `fork` makes another entry. */
export function entryOf(index: number, fork = 0): Uint8Array {
  const vrfHash = new Uint8Array(64).fill(fork)
  new DataView(vrfHash.buffer).setUint32(0, index)
  const publicKey = Buffer.alloc(32, `key ${index} `).toString('base64')
  // A copy: `formatEntry` hands out parts of shared memory.
  return Uint8Array.from(formatEntry(vrfHash, publicKey))
}

/** Entries 0 to `size - 1` of the usual log; those from `forkedAt` on differ. */
export function entriesOf(size: number, forkedAt = size): Uint8Array[] {
  return Array.from({ length: size }, (_, index) => entryOf(index, index < forkedAt ? 0 : 1))
}

/** The whole tree of these entries. */
export function integrate(entries: readonly Uint8Array[]): Integration {
  return new TreeTail({ edge: new RightEdge(0, []), tiles: [], bundle: undefined }).integrate(entries)
}

/** Everything that the log of these entries serves, checkpoint included, and nothing of its earlier sizes. */
export function logFilesOf(entries: readonly Uint8Array[], signer: SignerKey = SIGNER): LogFiles {
  const integration = integrate(entries)
  const grown = new Map<string, Uint8Array>()
  for (const { level, index, bytes } of integration.tiles) grown.set(`${level}/${index}`, bytes)
  for (const { index, bytes } of integration.bundles) grown.set(`entries/${index}`, bytes)
  const files: LogFiles = new Map()
  for (const tile of tilesBetween(0, entries.length)) {
    files.set(formatTilePath(tile), Uint8Array.from(grown.get(`${tile.level}/${tile.index}`)!))
  }
  return setCheckpoint(files, signCheckpoint(integration, signer))
}

export function setCheckpoint(files: LogFiles, note: string): LogFiles {
  return files.set('checkpoint', Buffer.from(note))
}

/** Changes one byte of a file: a letter becomes a different letter, and base64 stays base64. */
export function changeByte(files: LogFiles, path: string, at: number): LogFiles {
  const bytes = Uint8Array.from(files.get(path)!)
  bytes[at] = bytes[at] === LETTER_A ? LETTER_A + 1 : LETTER_A
  return files.set(path, bytes)
}

/** Answers a request itself when it returns true. `count` is how often the path was asked for before. */
export type Misbehaviour = (path: string, response: ServerResponse, count: number) => boolean

export interface FileServer {
  readonly url: string
  /** The files to serve. */
  files: LogFiles
  misbehave: Misbehaviour
  /** The paths asked for so far. */
  readonly requests: string[]
}

/** Serves the files on a free port under the prefix `/log`, until the test ends. */
export async function serveFiles(t: Test, files: LogFiles, misbehave?: Misbehaviour): Promise<FileServer> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    const path = request.url!.replace(/^\/log\//, '')
    const count = requests.filter(earlier => earlier === path).length
    requests.push(path)
    if (served.misbehave(path, response, count)) return
    const bytes = served.files.get(path)
    response.writeHead(bytes === undefined ? 404 : 200, { 'content-length': bytes?.length ?? 0 }).end(bytes)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/log`
  const served: FileServer = { url, files, misbehave: misbehave ?? (() => false), requests }
  return served
}

const LETTER_A = 0x41

/**
 * The built server on a disk whose syncs are slow, under strace, which sees what it wrote to its store and what it said
 * on its sockets. The trace shows an acknowledgement that left before its write was durable.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  type DiskEvent,
  diskEvents,
  durablePlaces,
  readTrace,
  type SystemCall,
  stringsOf,
  traceCommand,
} from './disk-trace.ts'
import { forcedLmdb, type LmdbFault } from './forced-lmdb.ts'
import { type RunningServer, startServer } from './server.ts'

export interface SlowServer extends RunningServer {
  /** Ends the server and resolves with what it acknowledged. */
  acknowledgements(): Promise<Acknowledgement[]>
}

export interface Acknowledgement {
  /** Such as `POST /app/api/call/start`, `RECEIPT r1`; or `invitation`, which tells another user of a call's start. */
  readonly what: string
  /** Whether something that was written since it was asked for was durable when it left. */
  readonly isFounded: boolean
  /** From the last octets of the request to the first of the answer. */
  readonly waitedMs: number
}

export interface SlowOptions {
  readonly folder: string
  readonly syncDelayMs: number
  readonly environment?: Readonly<Record<string, string>>
  /** Opens the store as the product never does, to see that it is noticed. */
  readonly fault?: LmdbFault
  /** Texts that mark bytes on a socket as an acknowledgement, by the acknowledged thing. */
  readonly answers?: () => ReadonlyMap<string, string>
}

export async function startSlowServer(options: SlowOptions): Promise<SlowServer> {
  const { folder, syncDelayMs, environment = {}, fault, answers = () => new Map() } = options
  mkdirSync(folder, { recursive: true })
  const [dataFolder, trace] = [join(folder, 'data'), join(folder, 'trace')]
  // A new store is made in dozens of commits; no answer waits for them.
  if (fault === undefined) await (await startServer({ dataFolder })).end()
  const server = await startServer({
    dataFolder,
    wrapper: traceCommand({ to: trace, stringBytes: STRING_BYTES, syncDelayMs }),
    environment: { ...environment, ...(fault && forcedLmdb(fault)) },
  })
  return {
    ...server,
    async acknowledgements() {
      await server.end()
      const calls = readTrace(trace)
      const events = diskEvents(calls, join(dataFolder, 'store', 'data.mdb'))
      return acknowledgementsIn(calls, commitsOf(events), answers())
    },
  }
}

/** The last octets that came on a connection. */
interface Asked {
  readonly at: number
  readonly atS: number
  /** The request that they belong to; of a protocol without any, empty. */
  readonly request: string
}

interface Commit {
  /** From its first write to its last, which makes it visible. */
  readonly begin: number
  /** Everything of it, and of those before it, is durable. */
  readonly durable: number
}

/** A commit ends with the write of one of the two meta pages, with which the file begins. */
function commitsOf(events: readonly DiskEvent[]): Commit[] {
  const places = durablePlaces(events)
  let durable = 0
  let begin: number | undefined
  return events.flatMap(event => {
    if (event.kind === 'sync') return []
    durable = Math.max(durable, places.get(event)!)
    begin ??= event.begin
    if (event.offset >= 2 * PAGE_BYTES) return []
    const commit = { begin, durable }
    begin = undefined
    return [commit]
  })
}

function acknowledgementsIn(
  calls: readonly SystemCall[],
  commits: readonly Commit[],
  answers: ReadonlyMap<string, string>,
): Acknowledgement[] {
  const asked = new Map<string, Asked>()
  const receipts = new Map<string, Asked>()
  let started: Asked | undefined
  return calls.flatMap(call => {
    const { name, target, begin, end, atS, result } = call
    if (!target.startsWith('TCP') || result <= 0) return []
    const text = Buffer.concat(stringsOf(call)).toString('latin1')
    const before = asked.get(target)
    if (name === 'read' || name === 'recvfrom') {
      const request = REQUEST.exec(text)?.[1] ?? before?.request ?? ''
      asked.set(target, { at: end, atS, request })
      // Frames that came later on the same connection are not what a receipt answers.
      for (const [, id] of text.matchAll(/\nreceipt:([^\n]*)/g))
        receipts.set(`RECEIPT ${id}`, asked.get(target)!)
      if (request.endsWith('/call/start')) started = asked.get(target)
      return []
    }
    const told: (readonly [what: string, since: Asked | undefined])[] = []
    for (const what of acknowledgedBy(text, before?.request ?? '', answers))
      told.push([what, receipts.get(what) ?? before])
    if (text.includes('"type":"call_invitation"')) told.push(['invitation', started])
    return told.map(([what, since = NEVER_ASKED]) => ({
      what,
      isFounded: commits.some(commit => commit.begin > since.at && commit.durable < begin),
      waitedMs: (atS - since.atS) * 1_000,
    }))
  })
}

/** The requests that one write to a socket acknowledges. */
function acknowledgedBy(text: string, request: string, answers: ReadonlyMap<string, string>): string[] {
  if (/^HTTP\/1\.1 2/.test(text)) return request.startsWith('GET') ? [] : [request]
  const receipts = [...text.matchAll(/RECEIPT\nreceipt-id:(?!sub-)([^\n]*)/g)].map(
    ([, id]) => `RECEIPT ${id}`,
  )
  const others = [...answers].filter(([said]) => text.includes(said)).map(([, what]) => what)
  return [...receipts, ...others]
}

const NEVER_ASKED: Asked = { at: 0, atS: 0, request: '' }
/** Holds what a request, or a frame that answers one, begins with. */
const STRING_BYTES = 1_500
const PAGE_BYTES = 4_096
const REQUEST = /^([A-Z]+ \/\S*) HTTP\/1\.1\r\n/

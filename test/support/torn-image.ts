/**
 * What a power cut would have left of a file, at any moment of a recorded run: everything that was durable by then, and
 * of the writes that were not, none, some or all, the last of them perhaps in part. Each image is opened by a process of
 * its own, since a damaged store may end it.
 */

import { type ChildProcess, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import {
  type DiskWrite,
  diskEvents,
  durablePlaces,
  readTrace,
  type SystemCall,
  stringsOf,
  traceCommand,
} from './disk-trace.ts'
import { forcedLmdb, type LmdbFault } from './forced-lmdb.ts'
import { builtProgram, spawnBound } from './programs.ts'

export interface Recording {
  readonly calls: readonly SystemCall[]
  /** Writes to the store's file, in the order of their begins. */
  readonly writes: readonly DiskWrite[]
  /** For each write the place at which it was durable. */
  readonly durable: ReadonlyMap<DiskWrite, number>
  /** The places at which the steps were acknowledged: the first at index 0. */
  readonly acknowledged: readonly number[]
}

/** Runs the writer of a counted store for so many steps, and records what it does. */
export function recordWriter(folder: string, steps: number, fault?: LmdbFault): Recording {
  const [dataFolder, trace] = [join(folder, 'data'), join(folder, 'trace')]
  const [strace = '', ...straceArgs] = traceCommand({ to: trace, stringBytes: STRING_BYTES })
  // Strace is done when its output, which it shares, is closed.
  execFileSync(strace, [...straceArgs, process.execPath, PROGRAM, 'write', dataFolder, String(steps)], {
    env: { ...process.env, ...(fault && forcedLmdb(fault)) },
  })
  const calls = readTrace(trace)
  const events = diskEvents(calls, join(dataFolder, 'store', 'data.mdb'))
  return {
    calls,
    writes: events.filter(event => event.kind === 'write'),
    durable: durablePlaces(events),
    acknowledged: calls
      .filter(
        call => call.name === 'write' && call.descriptor === 1 && /^ack /.test(String(stringsOf(call)[0])),
      )
      .map(({ begin }) => begin),
  }
}

export interface TornImage {
  /** In the order in which they were written. */
  readonly writes: readonly DiskWrite[]
  /** How many steps had been acknowledged by then. */
  readonly acknowledged: number
  /** Names the image's moment, and how much non-durable data it has. */
  readonly name: string
}

/** Up to four images for each change of the disk's state, or of the acknowledged writes. */
export function tornImages(recording: Recording, random: () => number): TornImage[] {
  const { writes, durable, acknowledged } = recording
  return momentsOf(recording).flatMap(place => {
    const issued = writes.filter(({ begin }) => begin < place)
    const kept = new Set(issued.filter(write => durable.get(write)! < place))
    const pending = issued.filter(write => !kept.has(write))
    return remainsOf(pending, random).map(([name, taken]) => ({
      writes: [...kept, ...taken].sort((one, other) => one.begin - other.begin),
      acknowledged: acknowledged.filter(at => at < place).length,
      name: `line ${place}: ${name}`,
    }))
  })
}

/** Before each write, and as each sync returns. */
function momentsOf({ writes, durable }: Recording): number[] {
  const begins = writes.map(({ begin }) => begin)
  const ends = [...durable.values()].filter(place => Number.isFinite(place))
  return [...new Set([...begins, ...ends, Number.MAX_SAFE_INTEGER])].sort((one, other) => one - other)
}

function remainsOf(
  pending: readonly DiskWrite[],
  random: () => number,
): (readonly [string, readonly DiskWrite[]])[] {
  if (pending.length === 0) return [['all durable', []]]
  const upTo = Math.floor(random() * pending.length)
  const cut = pending[upTo]!
  const sectors = Math.floor((random() * cut.bytes.length) / SECTOR_BYTES)
  const part = { ...cut, bytes: cut.bytes.subarray(0, sectors * SECTOR_BYTES) }
  return [
    ['nothing else', []],
    [`${upTo} writes and ${sectors} sectors of ${pending.length}`, [...pending.slice(0, upTo), part]],
    [`some of ${pending.length}`, pending.filter(() => random() < 0.5)],
    [`all of ${pending.length}`, pending],
  ]
}

function fileOf({ writes }: TornImage): Buffer {
  const file = Buffer.alloc(Math.max(0, ...writes.map(({ offset, bytes }) => offset + bytes.length)))
  for (const { offset, bytes } of writes) bytes.copy(file, offset)
  return file
}

/** An image's findings. */
export interface Found {
  /** The last step that is there. */
  readonly count: number
  /** The store's fault, or how its reader ended. */
  readonly fault?: string
}

/** Opens images one after the other. */
export class ImageReader {
  readonly #folder: string
  readonly #fault: LmdbFault | undefined
  #reader: Reader | undefined
  #images = 0

  constructor(folder: string, fault?: LmdbFault) {
    this.#folder = folder
    this.#fault = fault
  }

  async read(image: TornImage): Promise<Found> {
    const folder = join(this.#folder, `image-${this.#images++}`)
    mkdirSync(join(folder, 'store'), { recursive: true })
    writeFileSync(join(folder, 'store', 'data.mdb'), fileOf(image))
    this.#reader ??= this.#spawn()
    const { process, lines, ended } = this.#reader
    process.stdin!.write(`${folder}\n`)
    const hung = setTimeout(() => process.kill('SIGKILL'), HUNG_MS)
    const line = lines.next().then(({ value, done }) => (done ? ended : JSON.parse(value)))
    const found: Found = await Promise.race([line, ended])
    clearTimeout(hung)
    rmSync(folder, { recursive: true })
    return found
  }

  close(): void {
    this.#reader?.process.kill()
  }

  #spawn(): Reader {
    const env = { ...process.env, ...(this.#fault && forcedLmdb(this.#fault)) }
    const child = spawnBound(process.execPath, [PROGRAM, 'read'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
    const ended = once(child, 'exit').then(([code, signal]) => {
      this.#reader = undefined
      return { count: 0, fault: `its reader ended with ${signal ?? code}` }
    })
    return { process: child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](), ended }
  }
}

interface Reader {
  readonly process: ChildProcess
  readonly lines: AsyncIterator<string>
  readonly ended: Promise<Found>
}

// `forcedLmdb` finds the store among the modules as they were built.
const PROGRAM = builtProgram('test/support/counted-store-program')
/** Longer than what LMDB writes at once. */
const STRING_BYTES = 4 * 1024 * 1024
const SECTOR_BYTES = 512
/** A damaged store can keep its reader busy for ever. */
const HUNG_MS = 10_000

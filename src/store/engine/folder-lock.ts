/** One process at a time writes to a data directory. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { SignalError } from '../../errors.ts'
import { assertWhole } from './store-files.ts'

/** Tells people where to look; the lock itself is the kernel's. */
interface Holder {
  readonly pid: number
  readonly host: string
  readonly since: string
}

/**
 * The lock is a reader slot in an LMDB environment of its own: the kernel frees it when its process ends in any way,
 * so it can't go stale. Two processes that start together see each other and both refuse.
 *
 * LMDB names a slot by its process, and two containers can both have a process 1. Then the kernel does not give the slot, and the
 * library asks for it again for ten seconds, which blocks this process: `onWait` is called before.
 */
export function lockFolder(folder: string, onWait: (sentence: string) => void = () => {}): RootDatabase {
  const path = join(folder, 'lock')
  const advice = `nothing is kept there: remove ${path} while no server runs`
  assertWhole(join(path, 'data.mdb'), 'STORE_UNAVAILABLE', advice)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const lock = open({ path, overlappingSync: false })
  const inUse = (pid: number) => {
    const twin = pid === process.pid ? ' of another container' : ''
    return `data directory ${folder} is in use by process ${pid}${twin}${whereOf(path, pid)}`
  }
  const refuse = (pid: number) => {
    void lock.close()
    return new SignalError('STORE_UNAVAILABLE', inUse(pid))
  }
  lock.readerCheck()
  const hasTwin = () => holdersOf(lock).includes(process.pid)
  if (hasTwin()) onWait(`${inUse(process.pid)}: this one waits for its end, 10 s at most`)
  try {
    lock.get('held')
  } catch (error) {
    forgetRead(lock)
    if (hasTwin()) throw refuse(process.pid)
    void lock.close()
    throw error
  }
  const other = holdersOf(lock).find(pid => pid !== process.pid)
  if (other !== undefined) throw refuse(other)
  writeHolder(path)
  return lock
}

/** Runs `act` while no other process uses the data directory. Throws `STORE_UNAVAILABLE` where one does. */
export async function withFolderLock(
  folder: string,
  act: () => Promise<void>,
  onWait?: (sentence: string) => void,
): Promise<void> {
  const lock = lockFolder(folder, onWait)
  try {
    await act()
  } finally {
    await lock.close()
  }
}

/** The library would reset, in a moment, the transaction that it was not given, and end the process over that. */
function forgetRead(lock: RootDatabase): void {
  try {
    lock.resetReadTxn()
  } catch {
    // It has forgotten it.
  }
}

function holdersOf(lock: RootDatabase): number[] {
  return Array.from(lock.readerList().matchAll(/^\s*(\d+)\s/gm), ([, pid]) => Number(pid))
}

function whereOf(path: string, pid: number): string {
  const holder = readHolder(path)
  return holder?.pid === pid ? ` on host ${holder.host} since ${holder.since}` : ''
}

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(join(path, HOLDER), 'utf8'))
  } catch {
    return undefined
  }
}

function writeHolder(path: string): void {
  const holder: Holder = { pid: process.pid, host: hostname(), since: new Date().toISOString() }
  try {
    writeFileSync(join(path, HOLDER), JSON.stringify(holder), { mode: 0o600 })
  } catch {
    // The disk may be full, which is no reason not to start.
  }
}

const HOLDER = 'holder.json'

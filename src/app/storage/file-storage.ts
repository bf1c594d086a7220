/** A storage of files, for programs that run in Node. */

import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type AppStorage, storageCorrupt } from './storage.ts'

/** One file for each value, for its owner alone. Use a folder in one program at a time. */
export function fileStorage(folder: string): AppStorage {
  /** Writes take turns, so that the last one stays. */
  let turn: Promise<unknown> = Promise.resolve()
  const fileOf = (key: string) => join(folder, `${encodeURIComponent(key)}.json`)
  return {
    get: key => readJson(fileOf(key), key),
    put(key, value) {
      const written = turn.then(() => replaceFile(folder, fileOf(key), JSON.stringify(value)))
      turn = written.catch(() => {})
      return written
    },
  }
}

async function readJson(file: string, key: string): Promise<unknown> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw storageCorrupt(key, cause)
  }
}

/** After a crash the file has either the old text or the new one. */
async function replaceFile(folder: string, file: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const beside = `${file}.${randomUUID()}`
  try {
    await writeDurably(beside, text)
    await rename(beside, file)
  } catch (error) {
    await rm(beside, { force: true })
    throw error
  }
  await syncFolder(folder)
}

async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Windows opens no folder, and keeps names in order by itself. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

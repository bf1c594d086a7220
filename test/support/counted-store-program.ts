/**
 * A process that works on counted stores. `write FOLDER STEPS`: takes so many steps, a few at a time, and prints `ack
 * N` once each is durable. `read`: takes folders, one a line, and prints each one's step and faults; a damaged store
 * may end it.
 */

import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { CountedStore } from './counted-store.ts'

async function write(folder: string, steps: number): Promise<void> {
  const database = LmdbStore.open(folder)
  const store = new CountedStore(database)
  for (let taken = 0; taken < steps; ) {
    const atOnce = 1 + (taken % STEPS_AT_ONCE)
    const acknowledged = Array.from({ length: atOnce }, async () =>
      writeSync(1, `ack ${await store.step()}\n`),
    )
    await Promise.all(acknowledged)
    taken += atOnce
  }
  await database.close()
}

async function read(folder: string): Promise<void> {
  let found: { readonly count: number; readonly fault?: string | undefined }
  try {
    const database = LmdbStore.open(folder)
    const store = new CountedStore(database)
    found = { count: store.count, fault: store.fault() }
    await database.close()
  } catch (error) {
    found = { count: 0, fault: String(error) }
  }
  process.stdout.write(`${JSON.stringify(found)}\n`)
}

const STEPS_AT_ONCE = 5

const [mode = '', folder = '', steps = ''] = process.argv.slice(2)
if (mode === 'write') await write(folder, Number(steps))
else for await (const line of createInterface({ input: process.stdin })) await read(line)

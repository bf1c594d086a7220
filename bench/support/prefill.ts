/**
 * Logs to look things up in, filled in this process through the log appender and kept between runs. Most entries have
 * random bytes for a VRF hash; a share, spread evenly over the log, belongs to devices with their real hash, and only
 * these can be looked up.
 */

import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { VrfPool } from '../../src/keyserver/vrf/vrf-pool.ts'
import { parseVrfSecret } from '../../src/log/vrf.ts'
import { developmentKeys } from '../../src/server/development/development-keys.ts'
import { LogEngine } from './log-engine.ts'
import { randomKeys } from './random-keys.ts'
import { SERVER_LOG_FILE, startServer } from './server.ts'

export interface PrefilledLog {
  /** A data folder for a development server. Whoever registers into it must work on a copy. */
  readonly dataFolder: string
  /** Base64 VRF hashes of the devices that can be looked up, in no order of the log. */
  readonly targets: readonly string[]
}

export interface Prefill {
  readonly entries: number
  readonly devices: number
}

/** The log of these numbers, from an earlier run when there is one of the same code. */
export async function prefilledLog(storesFolder: string, prefill: Prefill): Promise<PrefilledLog> {
  const numbers = `log-${prefill.entries}-${prefill.devices}-`
  const folder = join(storesFolder, numbers + storeCodeTag())
  if (!existsSync(folder)) {
    const draft = `${folder}.draft`
    mkdirSync(storesFolder, { recursive: true })
    removeOutdated(storesFolder, numbers)
    process.stderr.write(`filling a log of ${prefill.entries} entries, kept in ${folder}\n`)
    await fill(draft, prefill)
    renameSync(draft, folder)
  }
  const targets = readFileSync(join(folder, TARGETS_FILE), 'utf8').split('\n')
  return { dataFolder: folder, targets: targets.slice(0, prefill.devices) }
}

async function fill(folder: string, { entries, devices }: Prefill): Promise<void> {
  mkdirSync(folder, { recursive: true })
  // The server itself makes the log, so that it is its own in every respect.
  const server = await startServer({ dataFolder: folder })
  await server.end()
  const hashes = await deviceHashes(folder, devices)
  const engine = await LogEngine.open(folder, 'all')
  const randomKey = randomKeys()
  const stride = Math.floor(entries / devices)
  await engine.append(entries, IN_FLIGHT, index => {
    const key = randomKey(index)
    const device = Math.floor(index / stride)
    // Any position within the stride will do, as long as it is not always the same within a tile.
    if (index % stride !== (device * 7) % stride || device >= devices) return key
    return { ...key, userId: BigInt(device), deviceId: 1n, vrfHash: hashes[device]! }
  })
  await engine.close()
  // The lookup index goes by a hash's front, so the order of the backs is one that nothing in the store follows.
  const inNoOrder = hashes.sort((a, b) => Buffer.compare(a.subarray(32), b.subarray(32)))
  const targets = inNoOrder.map(hash => Buffer.from(hash).toString('base64'))
  writeFileSync(join(folder, TARGETS_FILE), targets.join('\n'))
}

async function deviceHashes(folder: string, devices: number): Promise<Uint8Array[]> {
  const pool = await VrfPool.start({
    secret: parseVrfSecret(developmentKeys(folder).keys.vrfPrivateKey),
    threads: availableParallelism(),
    cacheEntriesMax: 1,
    queueMax: devices,
  })
  try {
    return await Promise.all(Array.from({ length: devices }, (_, device) => pool.hash(BigInt(device), 1n)))
  } finally {
    await pool.close()
  }
}

/** Changes with the code that shapes a store, and with the code that fills it. */
export function storeCodeTag(): string {
  const hash = createHash('sha256')
  const source = fileURLToPath(new URL('../../src', import.meta.url))
  const stores = ['store', 'keyserver'].flatMap(folder =>
    readdirSync(join(source, folder), { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.js'))
      .map(name => join(folder, name)),
  )
  for (const name of [...stores, 'log/entry.js', 'log/tile.js', 'log/vrf-fast.js'].sort()) {
    hash.update(readFileSync(join(source, name)))
  }
  for (const name of ['prefill.js', 'prefilled-town.js', 'people.js']) {
    hash.update(readFileSync(new URL(name, import.meta.url)))
  }
  return hash.digest('hex').slice(0, 8)
}

/** Removes logs of the same numbers that other code has filled, unless a run of that code may still be using them. */
export function removeOutdated(storesFolder: string, numbers: string): void {
  for (const name of readdirSync(storesFolder)) {
    const folder = join(storesFolder, name)
    if (!name.startsWith(numbers)) continue
    const usedAtMs = statSync(join(folder, SERVER_LOG_FILE), { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (Date.now() - usedAtMs > IN_USE_MS) rmSync(folder, { recursive: true })
  }
}

const TARGETS_FILE = 'targets.txt'
const IN_FLIGHT = 2_048
const IN_USE_MS = 3_600_000

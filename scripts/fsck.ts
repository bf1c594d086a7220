#!/usr/bin/env node
/** Checks the store in a data directory, and repairs tables derived from its entries: `fsck --data-dir DIR`. */

import { type CheckRequest, checkInProcess } from '../src/check/check-process.ts'
import { examine, type Line } from './fsck/examination.ts'
import { type Flags, optional, required, runCommand, secret, UsageError } from './support/command.ts'

const USAGE = `usage: node dist/scripts/fsck.js --data-dir DIR [--vkey KEY] [--vrf-sample N] [--repair]

Checks everything that is stored of the log: the form of every entry, every hash tile computed anew, the signed
checkpoint, the identity records, the lookup table, and the index: its leaves, and its map made anew from the entries.
Names the first wrong byte of each (table, key, offset) and goes on. Then reads every row of all other tables (accounts, devices, contacts, calls, messages): each has to be one, and
each index has to agree with what it points to, both ways. It only reads, at one moment, and may run beside the server.

  --data-dir DIR    the server's data directory (else CALLSIGN_DATA_DIR)
  --vkey KEY        the log's verifier key, which the store must have been made with (else KT_PUBLIC_KEY)
  --vrf-sample N    with VRF_PRIVATE_KEY set: hash the user and device of N entries again (1000 unless given)
  --repair          derive tiles, lookup table, earlier keys of identities and the index's map from the entries again; the
                    server must be stopped. Entries, leaves and signed checkpoints are never written

Prints a line per check: JSON unless at a terminal.
Exit code: 0 nothing is wrong, 1 something is, 2 it could not be checked.
`

function fsck(flags: Flags): Promise<number> {
  return examine(requestOf(flags), {
    repairs: flags.repair === true,
    check: request => checkInProcess(request, showProgress),
    print,
  })
}

function requestOf(flags: Flags): CheckRequest {
  const vkey = optional(flags, 'vkey') ?? process.env.KT_PUBLIC_KEY
  const vrfSecret = secret('VRF_PRIVATE_KEY')
  const sample = optional(flags, 'vrf-sample')
  if (sample !== undefined && vrfSecret === undefined)
    throw new UsageError('--vrf-sample needs VRF_PRIVATE_KEY')
  const sampleMax = sample === undefined ? SAMPLE_USUAL : Number(sample)
  if (!Number.isSafeInteger(sampleMax) || sampleMax < 1) {
    throw new UsageError(`--vrf-sample ${sample} is not a number of entries`)
  }
  return {
    withRows: true,
    dataFolder: required(flags, 'data-dir', 'CALLSIGN_DATA_DIR'),
    ...(vkey ? { vkey } : {}),
    ...(vrfSecret === undefined ? {} : { vrf: { secret: vrfSecret, sampleMax } }),
  }
}

function print(line: Line): void {
  const text = process.stdout.isTTY ? readable(line) : JSON.stringify(line)
  process.stdout.write(`${text}\n`)
}

function readable({ check, ok, detail, table, key, offset, faults }: Line): string {
  const mark = ok === true ? 'ok     ' : ok === false ? 'DAMAGED' : '-      '
  const byte = offset === undefined ? '' : `, byte ${offset}`
  const place = table === undefined ? '' : `${table}, ${key}${byte}: `
  const others = faults === undefined || faults === '1' ? '' : ` (the first of ${faults})`
  return `${CLEAR_LINE}${mark}  ${check.padEnd(CHECK_CHARS)}  ${place}${detail}${others}`
}

function showProgress(done: number): void {
  if (process.stderr.isTTY)
    process.stderr.write(`${CLEAR_LINE}${Math.floor(done * 100)} %${done < 1 ? '' : CLEAR_LINE}`)
}

const SAMPLE_USUAL = 1_000
const CLEAR_LINE = '\r\u001b[K'
const CHECK_CHARS = 'index-checkpoint'.length

await runCommand({
  name: 'fsck',
  usage: USAGE,
  flags: { 'data-dir': 'value', vkey: 'value', 'vrf-sample': 'value', repair: 'alone' },
  run: fsck,
})

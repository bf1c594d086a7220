#!/usr/bin/env node
/** Copies the log while the server runs: `backup --data-dir DIR --to FOLDER [--compact]`. */

import { backUp } from '../src/check/backup.ts'
import { askForCompaction } from '../src/store/engine/compaction.ts'
import { required, runCommand } from './support/command.ts'
import { copyLine } from './support/copy-line.ts'

const USAGE = `usage: node dist/scripts/backup.js --data-dir DIR --to FOLDER [--compact]

Writes a copy of the log and its index into FOLDER, which must be empty or not there, and outside DIR, and checks every
entry of it. The server may run meanwhile. Prints one line of JSON that says what the copy holds.

  --data-dir DIR   the server's data directory (else CALLSIGN_DATA_DIR)
  --to FOLDER      where the copy goes
  --compact        has the next start of the server write the store anew without the octets of what was removed, which the copy
                   is free of in any case

The copy holds no private keys. Keep KT_PRIVATE_KEY, KT_INDEX_PRIVATE_KEY, VRF_PRIVATE_KEY, CALLSIGN_ORIGIN and
CALLSIGN_SECRET beside it, in another place; a development server has them in DIR/development-keys.env. Without them the log can't be gone on with.

Exit code: 0 the copy is whole, 1 the log is damaged, 2 there is no copy for another reason.
`

await runCommand({
  name: 'backup',
  usage: USAGE,
  flags: { 'data-dir': 'value', to: 'value', compact: 'alone' },
  async run(flags) {
    const to = required(flags, 'to')
    const dataFolder = required(flags, 'data-dir', 'CALLSIGN_DATA_DIR')
    const copied = await backUp(dataFolder, to)
    // Only with a copy in hand.
    if (flags.compact === true) await askForCompaction(dataFolder)
    process.stdout.write(copyLine('backup', to, copied))
    return 0
  },
})

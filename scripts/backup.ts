#!/usr/bin/env node
/** Copies the log while the server runs: `backup --data-dir DIR --to FOLDER`. */

import { backUp } from '../src/check/backup.ts'
import { required, runCommand } from './support/command.ts'
import { copyLine } from './support/copy-line.ts'

const USAGE = `usage: node dist/scripts/backup.js --data-dir DIR --to FOLDER

Writes a copy of the log into FOLDER, which must be empty or not there, and outside DIR, and checks every entry of it.
The server may run meanwhile. Prints one line of JSON that says what the copy holds.

  --data-dir DIR   the server's data directory (else CALLSIGN_DATA_DIR)
  --to FOLDER      where the copy goes

The copy holds no private keys. Keep KT_PRIVATE_KEY, VRF_PRIVATE_KEY, CALLSIGN_ORIGIN and CALLSIGN_SECRET beside it, in
another place; a development server has them in DIR/development-keys.env. Without them the log can't be gone on with.

Exit code: 0 the copy is whole, 1 the log is damaged, 2 there is no copy for another reason.
`

await runCommand({
  name: 'backup',
  usage: USAGE,
  flags: { 'data-dir': 'value', to: 'value' },
  async run(flags) {
    const to = required(flags, 'to')
    const copied = await backUp(required(flags, 'data-dir', 'CALLSIGN_DATA_DIR'), to)
    process.stdout.write(copyLine('backup', to, copied))
    return 0
  },
})

#!/usr/bin/env node
/** Puts a backup into a new data directory: `restore --from FOLDER --data-dir DIR`. */

import { restore } from '../src/check/backup.ts'
import { required, runCommand } from './support/command.ts'
import { copyLine } from './support/copy-line.ts'

const USAGE = `usage: node dist/scripts/restore.js --from FOLDER --data-dir DIR

Checks every entry of the backup in FOLDER and puts it into DIR, which must be empty or not there. Prints one line of
JSON that says what it holds.

  --from FOLDER    a backup
  --data-dir DIR   the new data directory (else CALLSIGN_DATA_DIR)

The next start of the server asks for the newest checkpoint that an auditor or a client has seen: start it once with
--known-checkpoint FILE, unless CALLSIGN_LOG_HEAD_FILE of the old server is still there. An older copy must not sign on.
The same goes for the index, with --known-index-checkpoint FILE: until it is answered the index is held, and the log goes on.

Exit code: 0 restored, 1 the backup is damaged, 2 nothing was restored for another reason.
`

await runCommand({
  name: 'restore',
  usage: USAGE,
  flags: { from: 'value', 'data-dir': 'value' },
  async run(flags) {
    const dataFolder = required(flags, 'data-dir', 'CALLSIGN_DATA_DIR')
    const copied = await restore(required(flags, 'from'), dataFolder)
    process.stdout.write(copyLine('restore', dataFolder, copied))
    return 0
  },
})

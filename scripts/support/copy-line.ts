/** The line that tells what a copy of the log holds. */

import type { CopiedLog } from '../../src/check/backup.ts'

/** One line of JSON. Sizes are decimal texts; `checkpoint` is the whole signed note. */
export function copyLine(event: 'backup' | 'restore', folder: string, copied: CopiedLog): string {
  const { report, checkpoint, vkey, vrfPublicKey, index } = copied
  const { rootHash } = report
  const line = {
    event,
    folder,
    treeSize: `${report.treeSize}`,
    rootHash,
    vkey,
    vrfPublicKey,
    checkpoint,
    ...(index && { index: { ...index, leaves: `${index.leaves}` } }),
  }
  return `${JSON.stringify(line)}\n`
}

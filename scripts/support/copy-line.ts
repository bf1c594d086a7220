/** The line that tells what a copy of the log holds. */

import type { CopiedLog } from '../../src/check/backup.ts'

/** One line of JSON. The tree size is a decimal text; `checkpoint` is the whole signed note. */
export function copyLine(event: 'backup' | 'restore', folder: string, copied: CopiedLog): string {
  const { report, checkpoint, vkey, vrfPublicKey } = copied
  const { rootHash } = report
  const line = { event, folder, treeSize: `${report.treeSize}`, rootHash, vkey, vrfPublicKey, checkpoint }
  return `${JSON.stringify(line)}\n`
}

/** Ends the process at once, with code 1; by SIGKILL where LMDB writes, since an exit would wait for its thread. */

import { isLmdbWriting } from '../store/engine/lmdb-writes.ts'

export function endProcess(): never {
  if (isLmdbWriting()) process.kill(process.pid, 'SIGKILL')
  process.exit(1)
}

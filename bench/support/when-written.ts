/** Answers of programs that write a file when a signal asks for it. */

import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'

/** Resolves when the file is put in its place. */
export function whenWritten(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const watcher = watch(dirname(path), (_, name) => {
      if (name !== basename(path)) return
      watcher.close()
      resolve()
    })
    watcher.once('error', reject)
  })
}

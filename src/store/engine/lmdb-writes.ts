/**
 * LMDB writes in a thread of its own, which runs JavaScript for a transaction and waits for the main thread to do that. `process.exit`
 * waits for all threads, so during a transaction it would never end.
 */

let underWay = 0

/** Passes on the outcome of a transaction. */
export async function writing<Result>(transaction: Promise<Result>): Promise<Result> {
  underWay += 1
  try {
    return await transaction
  } finally {
    underWay -= 1
  }
}

/** Whether a transaction of this process is under way. */
export function isLmdbWriting(): boolean {
  return underWay > 0
}

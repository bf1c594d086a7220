/**
 * lmdb 3.5.6 writes its error message into 100 octets (`mdb_page_flush` in its mdb.c) and its numbers from
 * uninitialized memory: a message longer than 104 octets runs over the heap, and the C library aborts, then or later.
 */

export function isHeapOverrun(end: number | NodeJS.Signals | null | undefined, stderr: string): boolean {
  return end === 'SIGABRT' && OVERRUN.test(stderr)
}

const OVERRUN = /Write error: .*(corrupted|invalid|free\(\)|malloc)/s

/**
 * Sets V8's flags when it is imported. A program that serves imports it before all else that allocates.
 *
 * V8 looks through the whole heap each time that it has grown to a limit, and begins where as little is left below that
 * as the young generation holds: in a heap of 30 MB after every few megabytes, and each time 10 to 20 requests wait. So
 * the heap may grow to four times its live objects, and V8 begins at four fifths of the way (`call-start` in `bench/`).
 */

import { setFlagsFromString } from 'node:v8'

setFlagsFromString(
  '--heap-growing-percent=300 --incremental-marking-soft-trigger=80 --incremental-marking-hard-trigger=90',
)

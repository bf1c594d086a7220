#!/usr/bin/env node
/** The server. */

import './server/process/v8-flags.ts'
import './source-maps.ts'

// Behind the flags, which are a part of what Node's compile cache goes by.
const { runServer } = await import('./server/program.ts')
await runServer()

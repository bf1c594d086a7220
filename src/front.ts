/** A front as a program: the writer starts it with its name, gives it the settings, and stops it. */

import './server/process/v8-flags.ts'
import './source-maps.ts'

// Behind the flags, which are a part of what Node's compile cache goes by.
const { connectToWriter } = await import('./server/fronts/front-processes.ts')
const { guardOwnBinaries } = await import('./server/process/own-binaries.ts')

for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined)
const [name = 'front', binaries = ''] = process.argv.slice(2)
// Before the imports that load them.
guardOwnBinaries(binaries)
await import('./transport/platform.ts')
const { startFront } = await import('./server/fronts/front.ts')
startFront(connectToWriter(), name)

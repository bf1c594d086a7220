/** A front as a program: the writer starts it with its name, gives it the settings, and stops it. */

import './transport/platform.ts'
import './server/process/v8-flags.ts'

import { startFront } from './server/fronts/front.ts'
import { connectToWriter } from './server/fronts/front-processes.ts'

for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined)
startFront(connectToWriter(), process.argv[2] ?? 'front')

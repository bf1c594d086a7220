/** A writer with one front, for a test that kills it: says `ready` once the front has said something. */

import { TestWriter } from './front-writer.ts'

const writer = new TestWriter({ count: 1, args: ['loud'] })
await writer.until(() => writer.said.length > 0)
process.stdout.write('ready\n')

/** The types of `callsign/app` are those that the server documents. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { wireTypes } from '../../scripts/support/wire-types.ts'
import { openServer } from '../support/open-server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

t.test('the bodies of wire.ts are those of the documents', async t => {
  const server = await openServer({ dataFolder: t.testdir() })
  t.teardown(() => server.end())
  const read = async (name: string) => JSON.parse(await (await fetch(`${server.http}/${name}.json`)).text())
  const made = wireTypes(await read('openapi'), await read('asyncapi'))
  const how = 'start a server with `npm start`, then run `node dist/scripts/support/write-wire-types.js`'
  t.equal(readFileSync(join(PROJECT_ROOT, 'src/app/wire.ts'), 'utf8'), made, how)
})

/** Commands of docs/build/backend.md, typed in a folder of the project beside a development server. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listSettings } from '../../src/server/settings/config.ts'
import { openServer } from '../support/open-server.ts'
import { skipWithout } from '../support/programs.ts'
import { blocksOf, Reader } from '../support/your-users.ts'

const blocks = blocksOf('build/backend.md').filter(({ test }) => test === 'test/flows/backend-page.test.ts')
const [request = '', ...settings] = blocks.map(({ text }) => text)

async function newReader(t: Test): Promise<Reader> {
  const folder = t.testdir()
  const dataFolder = join(folder, 'data')
  const server = await openServer({ dataFolder })
  t.teardown(() => server.end())
  return Reader.beside(server, dataFolder, join(folder, 'reader'))
}

t.test(
  'the first request is answered as the page shows',
  { skip: skipWithout(['/usr/bin/jq'], 'jq') },
  async t => {
    const reader = await newReader(t)
    await reader.follows(t, request)
  },
)

t.test('the commands that write settings write such as the server knows', async t => {
  const reader = await newReader(t)
  for (const block of settings) await reader.follows(t, block)
  const written = readFileSync(join(reader.folder, 'callsign.env'), 'utf8').trimEnd().split('\n')
  const names = written.filter(line => !line.startsWith('#')).map(line => line.split('=')[0]!)
  t.same(names, [
    'CALLSIGN_TOKEN_KEY',
    'CALLSIGN_TOKEN_AUDIENCES',
    'CALLSIGN_WEBHOOK_URL',
    'CALLSIGN_WEBHOOK_SECRET',
  ])
  const known = listSettings().map(({ name }) => name)
  t.ok(names.every(name => known.includes(name)))
})

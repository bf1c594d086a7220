/** docs/run/moderation.md as a reader follows it: its commands, against a server with a report. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { meetPeople, settingsFor } from '../support/call-people.ts'
import { openServer } from '../support/open-server.ts'
import { builtProgram, runProgram, skipWithout } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const page = readFileSync(join(PROJECT_ROOT, 'docs/run/moderation.md'), 'utf8')
const lines = [...page.matchAll(/^```console\n([\s\S]+?)^```$/gm)].flatMap(([, block = '']) =>
  block.trimEnd().split('\n'),
)
const skip = skipWithout(['/usr/bin/curl', '/usr/bin/jq'], 'curl jq')

/** Each run has ids of its own. */
function withoutIds(text: string): string {
  return text.replaceAll(/\b\d{10,20}\b/g, '<id>').replaceAll(/\b[0-9a-f]{12}\b/g, '<key>')
}

t.test('the commands of the page print what the page shows', { skip }, async t => {
  const dataFolder = join(t.testdir({ work: {} }), 'data')
  const server = await openServer({ dataFolder, environment: settingsFor(2) })
  t.teardown(() => server.end())
  const [ann, bob] = await meetPeople(server.http, 2)
  await bob!.app.get(200, 'PUT /app/api/user', { displayName: 'Bob' })
  const text = 'He calls every night and says that he knows where I live'
  await ann!.app.get(201, 'POST /app/api/report', { userId: bob!.userId, reason: 'threat', text })
  const commands = lines.filter(line => line.startsWith('$ ')).map(line => line.slice(2))
  const script = [
    'set -e',
    `cd '${join(dataFolder, '..', 'work')}'`,
    `npx() { shift; '${process.execPath}' '${builtProgram('scripts/callsign')}' "$@" --dev --url ${server.serverApi} 2>&1 >mara.key; }`,
    ...commands.map(command =>
      command.replace(' > mara.key', '').replace('http://127.0.0.1:9070', server.serverApi),
    ),
  ].join('\n')
  const { code, stdout, stderr } = await runProgram('/bin/bash', ['--norc', '-c', script], {
    environment: { CALLSIGN_DATA_DIR: dataFolder },
  })
  t.equal(code, 0, stderr)
  const shown = lines.filter(line => !line.startsWith('$ ')).join('\n')
  t.equal(withoutIds(stdout.trimEnd()), withoutIds(shown))
})

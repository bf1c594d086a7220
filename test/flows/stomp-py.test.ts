/**
 * A STOMP client of another language, which knows nothing of us: stomp.py over TCP (`test/strangers/python`), in each
 * version. Skipped where Debian's package is not installed.
 */

import { join } from 'node:path'
import t from 'tap'
import { runProgram, skipWithout } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { type WireDevice, WireServer } from '../support/wire-server.ts'

const PYTHON = '/usr/bin/python3'
const skip = skipWithout([PYTHON, '/usr/lib/python3/dist-packages/stomp'], 'python3-stomp')

async function tellStory(
  server: WireServer,
  { userId, token }: WireDevice,
  version: string,
): Promise<unknown[]> {
  const [host = '', port = ''] = server.running.stompTcp!.split(':')
  const script = join(PROJECT_ROOT, 'test/strangers/python/stomp_story.py')
  const input = JSON.stringify({ login: userId, passcode: token })
  const environment = { PYTHONDONTWRITEBYTECODE: '1' }
  const { code, stdout, stderr } = await runProgram(PYTHON, [script, host, port, version], {
    input,
    environment,
  })
  if (code !== 0) throw new Error(`stomp_story.py: ${stdout}${stderr}`)
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

t.test('stomp.py', { skip }, async t => {
  const server = await WireServer.start(t, { people: 4 })
  const [innocent] = await server.devices(1)
  for (const version of ['1.2', '1.1', '1.0']) {
    t.test(`connects, sends, acknowledges, comes back and gets the rest, in ${version}`, async t => {
      const [device] = await server.devices(1)
      const beside = await server.connect('websocket', innocent!)
      await beside.subscribe('/user/queue/dev.py')
      t.same(await tellStory(server, device!, version), [
        ['connected', version],
        ['live', 'grüße 🎥', 'a: b', 'live'],
        ['transaction', 'early', 'late'],
        ['unsubscribed', 0],
        ['given', '1', '2', '3'],
        ['again', ['2', 'true'], ['3', 'true']],
        ['left', 0],
        ['refused', '401', 'token_invalid'],
        ['end'],
      ])
      const next = await server.connect('tcp', device!)
      await next.subscribe('/user/queue/dev.py')
      t.same(await next.disconnect(), [], 'nothing is left of it')
      t.same(await beside.disconnect(), [], 'and nobody else heard of it')
    })
  }
  t.test('the server logged no fault', async t => t.same(server.faults(), []))
})

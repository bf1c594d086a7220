/** The files of `deploy/janus`, as they are, with a real Janus. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { writeJanusFiles } from '../../src/media/janus-files.ts'
import { skipWithoutJanus, startJanus } from '../support/janus.ts'
import { runProgram, skipWithout } from '../support/programs.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

t.test('Janus with the files of deploy/janus', { skip: skipWithoutJanus }, async t => {
  const janus = await startJanus(t, t.testdir())

  await t.test('has the plugin for rooms, two transports and one event handler, and no other', async t => {
    const info = await janus.admin({ janus: 'info' })
    t.same(Object.keys(info.plugins as object), ['janus.plugin.videoroom'])
    t.same(Object.keys(info.transports as object).sort(), [
      'janus.transport.http',
      'janus.transport.websockets',
    ])
    t.same(Object.keys(info.events as object), ['janus.eventhandler.sampleevh'])
    t.match(info, { auth_token: true, 'session-timeout': 60, 'reclaim-session-timeout': 15 })
  })

  await t.test('has no room of its own', async t => {
    const { list } = await janus.videoRoom({ request: 'list', admin_key: janus.secrets.adminKey })
    t.same(list, [])
  })

  await t.test('needs the key to make a room', async t => {
    t.match(await janus.videoRoom({ request: 'create', room: 7 }), { error_code: 429 })
    const made = { request: 'create', room: 7, admin_key: janus.secrets.adminKey }
    t.match(await janus.videoRoom(made), { videoroom: 'created', room: 7 })
  })

  await t.test('answers again after it was killed, without its rooms', async t => {
    await janus.restart()
    t.match(await janus.videoRoom({ request: 'exists', room: 7 }), { exists: false })
  })
})

t.test(
  'the start script of the container fills in the same, and refuses without a secret',
  { skip: skipWithout(['/usr/bin/envsubst'], 'gettext-base') },
  async t => {
    const folder = t.testdir({ secret: 'from a file'.replaceAll(' ', '-') })
    const values = {
      JANUS_ADMIN_KEY: 'key',
      JANUS_TOKEN_SECRET: 'token',
      JANUS_EVENTS_URL: 'http://127.0.0.1:1/events',
      JANUS_EVENTS_USER: 'janus',
      JANUS_EVENTS_PASSWORD: 'password',
      JANUS_WS_IP: '127.0.0.1',
      JANUS_ADMIN_IP: '127.0.0.1',
      JANUS_RTP_PORTS: '20000-20099',
    }
    const expected = { ...values, JANUS_ADMIN_SECRET: 'from-a-file', JANUS_WS_PORT: 1, JANUS_ADMIN_PORT: 2 }
    writeJanusFiles(join(folder, 'expected'), expected)
    const environment = {
      ...values,
      JANUS_WS_PORT: '1',
      JANUS_ADMIN_PORT: '2',
      JANUS_ADMIN_SECRET_FILE: join(folder, 'secret'),
      JANUS_FOLDER: join(folder, 'filled'),
      JANUS_PROGRAM: 'echo',
    }
    const script = join(PROJECT_ROOT, 'deploy/janus/start.sh')
    const { code, stderr } = await runProgram('/bin/sh', [script], { environment })
    t.equal(code, 0, stderr)
    for (const name of readdirSync(join(folder, 'expected'))) {
      const [made, wanted] = ['filled', 'expected'].map(each =>
        readFileSync(join(folder, each, name), 'utf8'),
      )
      t.equal(made, wanted, name)
    }
    writeFileSync(join(folder, 'secret'), '')
    const refused = await runProgram('/bin/sh', [script], { environment })
    t.match(refused, { code: 1, stderr: /JANUS_ADMIN_SECRET is missing/ })
  },
)

/** The files of `deploy/janus`, as they are, with a real Janus. */

import t from 'tap'
import { skipWithoutJanus, startJanus } from '../support/janus.ts'

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

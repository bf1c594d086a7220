/** Fake users with sound and picture: the development client in one tab is in a group call with them, by a real Janus. */

import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import t from 'tap'
import { DESKTOP, openBrowser, skipWithoutChromium, WITH_CAMERA } from '../support/browser.ts'
import { button, newTab, openHouse, seesPictures } from '../support/client-page.ts'
import { skipWithoutJanus, startJanus } from '../support/janus.ts'
import { openServer } from '../support/open-server.ts'
import { runProgram, startedProgram } from '../support/programs.ts'
import { RunningSimulator } from '../support/simulator.ts'
import { long } from '../support/size.ts'

t.test(
  'one tab sees two fake users, whose frames go encrypted, until they go home',
  { skip: skipWithoutChromium || skipWithoutJanus },
  async t => {
    const folder = t.testdir({ data: {}, janus: {} })
    const janus = await startJanus(t, join(folder, 'janus'))
    const server = await openServer({ dataFolder: join(folder, 'data'), environment: janus.environment })
    const browser = (await openBrowser(t)) as Browser
    const { url, newContext } = await openHouse(t, browser, server)
    const ann = await newTab(await newContext({ viewport: DESKTOP, ...WITH_CAMERA }), url, 'Ann')
    const link = await ann.getByRole('textbox', { name: 'Your link' }).inputValue()
    const people = ['--people', 'answer,answer', '--befriend', link, '--pace', '0.2', '--media', 'yes']
    const simulator = new RunningSimulator(t, server.http, people)
    for (const name of NAMES) {
      await ann
        .locator('.card')
        .filter({ hasText: `${name} wants` })
        .getByText('Accept')
        .click()
      await simulator.line(new RegExp(`${name} +is a contact of Ann`))
    }
    for (const name of NAMES) await ann.getByLabel(`Mark ${name} for`).check()
    await button(ann, 'Video call with 2').click()
    for (const name of NAMES) await simulator.line(new RegExp(`${name} +sends silence and a moving mark`))
    await seesPictures(ann, 2)
    t.equal(await simulator.ended('SIGTERM'), 0, simulator.stderr)
    t.equal(simulator.stderr, '')
    const request = { request: 'list', admin_key: janus.secrets.adminKey }
    const isAlone = async () => ((await janus.videoRoom(request)).list as Room[])[0]!.num_participants === 1
    while (!(await isAlone())) await new Promise(resolve => setImmediate(resolve))
  },
)

t.test('without a gateway, or without a browser, it says so at once', long(), async t => {
  const server = await openServer({ dataFolder: t.testdir() })
  t.teardown(() => server.end())
  for (const [environment, sentence] of [
    [{}, /--media needs (a server with Janus as its media gateway: apt install janus|a Chromium)/],
    [{ CALLSIGN_CHROMIUM: '/nowhere' }, /--media needs a Chromium: apt install chromium/],
  ] as const) {
    const args = [
      startedProgram('scripts/simulate'),
      '--url',
      server.http,
      '--people',
      'answer',
      '--media',
      'yes',
    ]
    const { code, stderr } = await runProgram(process.execPath, args, { environment })
    t.equal(code, 2)
    t.match(stderr, sentence)
  }
})

interface Room {
  readonly num_participants: number
}

const NAMES = ['Anna Answers', 'Anna Answers 2']

/** `<callsign-ring>` in a browser: who calls, the tone, and both ways to answer. */

import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { skipWithoutChromium } from '../../support/browser.ts'
import { openHome } from '../../support/home-page.ts'
import {
  befriendPages,
  launchWithCameras,
  openPage,
  openPerson,
  show,
  until,
} from '../../support/media-page.ts'
import { faultsOf } from '../../support/operator-page.ts'
import { SDK_MODULE } from '../../support/sdk-module.ts'

function button(page: Page, name: string) {
  return page.getByRole('button', { name })
}

/** Ann's page and Bob's, who are contacts; `call` has Ann call Bob, whose page shows the ring. */
async function setUp(t: Test) {
  const house = await openHome(t, await launchWithCameras(t))
  const [ann, bob] = [await openPerson(house, 'Ann'), await openPerson(house, 'Bob')]
  const [, bobId] = await befriendPages(ann, bob)
  const call = async () => {
    await ann.evaluate(`me.call(['${bobId}'], { video: true }).then(call => { globalThis.call = call })`)
    await until(bob, 'me.calls.length === 1')
    await show(bob, 'callsign-ring', 'call: me.calls[0]')
    await button(bob, 'Answer').waitFor()
  }
  return { ann, bob, call }
}

t.test(
  'a call rings with a tone and a title until its caller gives up',
  { skip: skipWithoutChromium },
  async t => {
    const { ann, bob, call } = await setUp(t)
    const title = await bob.title()
    await call()
    await bob.getByText('Ann calls with video').waitFor()
    await bob.getByText('Verified').waitFor()
    await until(bob, 'tones() === 1')
    t.match(await bob.title(), /^☎ Ann calls · /)
    t.same(await faultsOf(bob), [])
    await ann.evaluate('call.end()')
    await button(bob, 'Answer').waitFor({ state: 'detached' })
    t.equal(await bob.evaluate('tones()'), 0)
    t.equal(await bob.title(), title)
  },
)

t.test(
  'an answer without camera keeps it off, and the tone ends with the click',
  { skip: skipWithoutChromium },
  async t => {
    const { ann, bob, call } = await setUp(t)
    await call()
    await bob.evaluate(`addEventListener('answer', ({ detail }) => {
      globalThis.media = new ui.Media(me, detail.call, { newWorker: () => undefined })
    })`)
    await button(bob, 'Without camera').click()
    await until(bob, `tones() === 0 && media.view.local?.getAudioTracks().length === 1`)
    t.equal(await bob.evaluate(`opened.filter(({ kind }) => kind === 'video').length`), 0)
    await ann.evaluate('call.end()')
    await until(bob, `live('audio').length === 0`)
  },
)

t.test('a declined call ends for both', { skip: skipWithoutChromium }, async t => {
  const { ann, bob, call } = await setUp(t)
  await call()
  await button(bob, 'Decline').click()
  await until(ann, `call.state === 'ended'`)
  t.equal(await bob.evaluate('tones()'), 0)
})

t.test('a ring made anew says why its caller was refused', { skip: skipWithoutChromium }, async t => {
  const page = await openPage(await openHome(t, await launchWithCameras(t)))
  await page.evaluate(`{
    const listeners = []
    globalThis.listeners = listeners
    globalThis.ringing = {
      callId: '7', isIncoming: true, state: 'ringing', isVideo: false, isVerified: undefined,
      caller: { userId: '2', name: 'Ann', displayName: 'Ann' },
      on(name, listener) {
        const entry = { name, listener }
        listeners.push(entry)
        return () => void listeners.splice(listeners.indexOf(entry), 1)
      },
    }
  }`)
  await show(page, 'callsign-ring', 'call: ringing')
  await page.evaluate(`import('${SDK_MODULE}').then(({ CallsignError }) => {
    ringing.isVerified = false
    const error = new CallsignError('KEYS_REFUSED', 'no', { members: { userId: '2', check: 'vrf' } })
    for (const { name, listener } of [...listeners]) if (name === 'error') listener(error)
  })`)
  await page.getByText('Do not answer').waitFor()
  const count = await page.evaluate('listeners.length')
  await show(page, 'callsign-ring', 'call: ringing')
  await page.getByText('Do not answer').waitFor()
  t.equal(await button(page, 'Answer').isDisabled(), true)
  t.equal(await page.evaluate('listeners.length'), count)
})

t.test('two calls share one tone and the title', { skip: skipWithoutChromium }, async t => {
  const house = await openHome(t, await launchWithCameras(t))
  const bob = await openPerson(house, 'Bob')
  const callers = [await openPerson(house, 'Ann'), await openPerson(house, 'Cleo')]
  const title = await bob.title()
  for (const [at, caller] of callers.entries()) {
    const [, bobId] = await befriendPages(caller, bob)
    await caller.evaluate(`me.call(['${bobId}']).then(call => { globalThis.call = call })`)
    await until(bob, `me.calls.length === ${at + 1}`)
  }
  await bob.evaluate(`document.querySelector('main').append(
    ...me.calls.map(call => Object.assign(document.createElement('callsign-ring'), { me, call })))`)
  await until(bob, 'tones() === 1')
  t.match(await bob.title(), new RegExp(`^☎ \\S+ calls · ${title}$`))
  for (const caller of callers) await caller.evaluate('call.end()')
  await until(bob, 'tones() === 0')
  t.equal(await bob.title(), title)
})

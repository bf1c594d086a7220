/** `<callsign-lobby>` with pretended devices: choosing them, seeing oneself, and a browser that refuses. */

import type { Page } from 'playwright-core'
import t from 'tap'
import { skipWithoutChromium } from '../../support/browser.ts'
import { openHome } from '../../support/home-page.ts'
import { launchWithCameras, openPage, show, until } from '../../support/media-page.ts'
import { faultsOf } from '../../support/operator-page.ts'
import { SDK_MODULE } from '../../support/sdk-module.ts'

const PICTURE = `document.querySelector('callsign-lobby').renderRoot.querySelector('video')`
const CAMERA = `live('video')[0]?.getSettings().deviceId`

function button(page: Page, name: string) {
  return page.getByRole('button', { name })
}

t.test(
  'the lobby shows oneself, changes devices, and gives the choice; then camera and microphone are closed',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, await launchWithCameras(t))
    const page = await openPage(house)
    await show(page, 'callsign-lobby')
    await until(page, `${PICTURE}?.videoWidth > 0`)
    t.match(await page.evaluate(`getComputedStyle(${PICTURE}).transform`), /^matrix\(-1,/, 'mirrored')
    t.same(await faultsOf(page), [])
    await until(
      page,
      `document.querySelector('callsign-lobby').renderRoot.querySelector('[role=meter]').ariaValueNow > 5`,
    )

    const before = await page.evaluate(CAMERA)
    await page.getByLabel('Camera', { exact: true }).selectOption({ index: 2 })
    await until(page, `${CAMERA} !== undefined && ${CAMERA} !== '${before}'`)
    t.equal(await page.evaluate(`live('video').length`), 1, 'one light')
    const chosen = await page.evaluate(CAMERA)
    const label = await page.evaluate(`live('video')[0].label`)

    await button(page, 'Camera on').click()
    await page.getByText('The camera is off.').waitFor()
    t.equal(await page.evaluate(`live('video').length`), 0, 'the light is out')
    await button(page, 'Camera off').click()
    await until(page, `${CAMERA} === '${chosen}'`)
    await button(page, 'Microphone on').click()
    await button(page, 'Microphone off').waitFor()

    await page.evaluate(`addEventListener('start', ({ detail }) => { globalThis.choice = detail.choice })`)
    await button(page, 'Start the call').click()
    t.match(await page.evaluate('choice'), { microphone: false, camera: chosen })
    await page.evaluate(`document.querySelector('callsign-lobby').remove()`)
    t.equal(await page.evaluate(`live('video').length + live('audio').length`), 0)

    await page.reload()
    await page.evaluate(`import('${SDK_MODULE}')`)
    await show(page, 'callsign-lobby')
    // This browser gives it another id.
    await until(page, `live('video')[0]?.label === '${label}'`)
    t.pass('the next lobby has the same camera')
  },
)

t.test('a browser that gives no devices is met with a sentence', { skip: skipWithoutChromium }, async t => {
  const house = await openHome(t, await launchWithCameras(t))
  const refuse = `if (navigator.mediaDevices) navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('no', 'NotAllowedError') }`
  const page = await openPage(house, {}, refuse)
  await show(page, 'callsign-lobby')
  await page.getByRole('alert').getByText('Allow it beside the address').waitFor()
  await page.getByText('The camera is off.').waitFor()
  t.same(await faultsOf(page), [])
})

t.test('a test tone plays by the chosen speaker, once', { skip: skipWithoutChromium }, async t => {
  const house = await openHome(t, await launchWithCameras(t))
  const page = await openPage(house)
  await show(page, 'callsign-lobby', 'video: false')
  await button(page, 'Play a test tone').click()
  await until(page, 'tones() === 1')
  t.equal(await page.evaluate(`live('video').length`), 0, 'a call without video opens no camera')
  await page.getByLabel('Speaker').selectOption({ index: 1 })
  t.match(await page.evaluate(`JSON.parse(localStorage.getItem('callsign.devices'))`), {
    speaker: { label: /./ },
  })
})

const HELD_QUESTION = `
const ask = navigator.mediaDevices.getUserMedia
navigator.mediaDevices.getUserMedia = async wish => {
  await new Promise(resolve => { globalThis.allow = resolve })
  return ask(wish)
}`

t.test(
  'what is switched off while the browser asks stays off; a lobby that has gone opens nothing',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, await launchWithCameras(t))
    const page = await openPage(house)
    await page.evaluate(HELD_QUESTION)
    await show(page, 'callsign-lobby')
    await until(page, 'globalThis.allow !== undefined')
    await button(page, 'Microphone on').click()
    await page.evaluate('allow()')
    await until(page, `${PICTURE}?.videoWidth > 0`)
    t.ok(await button(page, 'Microphone off').isVisible())
    t.same(await page.evaluate(`live('audio').map(({ enabled }) => enabled)`), [false])

    await page.evaluate('globalThis.allow = undefined')
    await show(page, 'callsign-lobby')
    await until(page, 'globalThis.allow !== undefined')
    await page.evaluate(`document.querySelector('callsign-lobby').remove()`)
    await page.evaluate('allow()')
    await until(page, `opened.length === 4 && live('audio').length + live('video').length === 0`)
    t.pass('both are closed')
  },
)

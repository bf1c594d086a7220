/** The development client reads QR codes: from a picture, and by the camera, here a drawn picture. */

import type { Browser, Page } from 'playwright-core'
import { encodeQR } from 'qr'
import t from 'tap'
import { DESKTOP, openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { button, newTab, openHouse, widthsOf } from '../support/client-page.ts'

const browser = (await openBrowser(t)) as Browser
const OTHERS = 'I have somebody else’s link or code'

/** A camera that shows `showCode`’s text as a QR code, small and turned, and grey before; `isCameraOn` says whether it is used. */
const CAMERA = `
  const canvas = document.createElement('canvas')
  ;[canvas.width, canvas.height] = [640, 480]
  const drawing = canvas.getContext('2d')
  let rows = []
  setInterval(() => {
    drawing.fillStyle = '#888'
    drawing.setTransform(1, 0, 0, 1, 0, 0)
    drawing.fillRect(0, 0, 640, 480)
    drawing.setTransform(4, 0.4, -0.4, 4, 170, 60)
    drawing.fillStyle = '#fff'
    drawing.fillRect(0, 0, rows.length, rows.length)
    drawing.fillStyle = '#000'
    rows.forEach((row, y) => row.forEach((isBlack, x) => isBlack && drawing.fillRect(x, y, 1, 1)))
  }, 50)
  let stream
  globalThis.showCode = each => void (rows = each)
  globalThis.isCameraOn = () => stream?.getTracks().some(({ readyState }) => readyState === 'live') ?? false
  if (navigator.mediaDevices) navigator.mediaDevices.getUserMedia = async () => (stream = canvas.captureStream(10))`

const linkOf = (page: Page) => page.getByRole('textbox', { name: 'Your link' }).inputValue()

async function openWays(page: Page): Promise<void> {
  await page.getByText(OTHERS).click()
}

t.test(
  'a code is read from a picture, and its owner is shown before they are asked',
  { skip: skipWithoutChromium },
  async t => {
    const { url, newContext } = await openHouse(t, browser)
    const ann = await newTab(await newContext(), url, 'Ann')
    const bob = await newTab(await newContext(), url, 'Bob')
    await ann.getByText('Show it as a QR code').click()
    const buffer = await ann.locator('svg.qr').screenshot()
    await openWays(bob)
    const choose = (picture: Buffer) =>
      bob
        .getByLabel('Choose a picture of it')
        .setInputFiles({ name: 'code.png', mimeType: 'image/png', buffer: picture })
    await choose(await ann.locator('header').screenshot())
    await bob.getByText('There is no QR code in that picture').waitFor()
    await choose(Buffer.from('no picture'))
    await bob.getByText('There is no QR code in that picture').waitFor()
    await choose(buffer)
    await bob.locator('.attention').getByText('has shared a link with you').waitFor()
    t.equal(await button(ann, 'Accept').count(), 0, 'nothing is asked yet')
    await bob.getByRole('button', { name: 'Ask Ann to be contacts' }).click()
    await button(ann, 'Accept').click()
    await button(ann, 'Video call to Bob').waitFor()
    await choose(buffer)
    await bob.getByText('Ann is a contact of yours.').waitFor()
  },
)

for (const [size, viewport] of [
  ['a phone', undefined],
  ['a desktop', DESKTOP],
] as const) {
  t.test(
    `a code is read by the camera, which is off then, on ${size}`,
    { skip: skipWithoutChromium },
    async t => {
      const { url, newContext } = await openHouse(t, browser)
      const ann = await newTab(await newContext(), url, 'Ann')
      const context = await newContext({ permissions: ['camera'], ...(viewport && { viewport }) })
      await context.addInitScript(CAMERA)
      const bob = await newTab(context, url, 'Bob')
      await openWays(bob)
      const isOn = () => bob.evaluate('isCameraOn()')
      await button(bob, 'Scan with the camera').click()
      await button(bob, 'Stop the camera').waitFor()
      t.ok(await isOn())
      await button(bob, 'Stop the camera').click()
      await bob.waitForFunction('!isCameraOn()')

      await button(bob, 'Scan with the camera').click()
      await button(bob, 'Stop the camera').waitFor()
      await show(bob, 'https://example.org/')
      await bob.getByText('This is not a contact’s code or link for this app.').waitFor()
      t.notOk(await isOn())

      await show(bob, await linkOf(ann))
      await button(bob, 'Scan with the camera').click()
      await bob.locator('.attention').getByText('has shared a link with you').waitFor()
      t.notOk(await isOn())
      const [wide, inner] = (await widthsOf(bob)) as [number, number]
      t.ok(wide <= inner)
      await button(bob, 'Ask Ann').click()
      await button(ann, 'Accept').waitFor()
    },
  )
}

t.test(
  'a user id is asked for by itself, and a browser’s own reader is used',
  { skip: skipWithoutChromium },
  async t => {
    const { url, newContext } = await openHouse(t, browser)
    const ann = await newTab(await newContext(), url, 'Ann')
    const id = await userIdOf(ann)
    const context = await newContext({ permissions: ['camera'] })
    await context.addInitScript(CAMERA)
    await context.addInitScript(`globalThis.BarcodeDetector = class {
    static getSupportedFormats = async () => ['qr_code']
    detect = async ({ videoWidth }) => videoWidth > 0 ? [{ rawValue: ' ${id}\\n' }] : []
  }`)
    const bob = await newTab(context, url, 'Bob')
    await openWays(bob)
    await button(bob, 'Scan with the camera').click()
    await bob.getByText(`user ${id}`, { exact: true }).waitFor()
    t.equal(await button(ann, 'Accept').count(), 0)
    await button(bob, 'to be contacts').click()
    await button(ann, 'Accept').waitFor()
  },
)

/** The page's user, as the server names them to the page's own token. */
async function userIdOf(page: Page): Promise<string> {
  const sent = page.waitForRequest(request => 'authorization' in request.headers())
  await page.reload()
  const { authorization } = (await sent).headers()
  const answer = await fetch(new URL('/app/api/user', page.url()), {
    headers: { authorization: authorization! },
  })
  return ((await answer.json()) as { userId: string }).userId
}

/** Holds a code in front of the camera. */
function show(page: Page, text: string): Promise<unknown> {
  return page.evaluate(`showCode(${JSON.stringify(encodeQR(text, 'raw', { ecc: 'medium', border: 4 }))})`)
}

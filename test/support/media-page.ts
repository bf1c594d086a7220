/** Pages of people with pretended cameras, who call by the elements and the media of `@callsign/sdk/ui`. */

import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'
import { CHROMIUM } from '../../scripts/support/chromium.ts'
import { launchBrowser, PATIENCE_MS, SWITCHES, WITH_CAMERA } from './browser.ts'
import type { HomeHouse } from './home-page.ts'
import { SDK_MODULE } from './sdk-module.ts'

/** With three cameras, the second without pictures that a call can send; it has three microphones and speakers anyway. */
export function launchWithCameras(t: Test): Promise<Browser> {
  const others = SWITCHES.filter(each => !each.includes('fake-device'))
  const cameras = '--use-fake-device-for-media-stream=fps=5,device-count=3'
  return launchBrowser(t, CHROMIUM ?? '', [...others, cameras])
}

/** A page with `ui`, the module. It notes the tracks that were `opened`, and the `sounds` that it makes. */
export async function openPage(
  house: HomeHouse,
  options: BrowserContextOptions = WITH_CAMERA,
  script = '',
): Promise<Page> {
  const context = await house.newContext(options)
  await context.addInitScript(NOTES + script)
  const page = await context.newPage()
  await page.goto(house.url)
  await until(page, 'globalThis.me !== undefined')
  await page.evaluate(`import('${SDK_MODULE}').then(module => { globalThis.ui = module })`)
  return page
}

/** The same, of a person who is signed in. */
export async function openPerson(house: HomeHouse, name: string, script = ''): Promise<Page> {
  const page = await openPage(house, WITH_CAMERA, script)
  await page.evaluate(`import('${SDK_MODULE}').then(({ sentCode }) => {
    const address = '${name.toLowerCase()}@example.org'
    return me.signIn(address, () => sentCode(location.origin, address), { displayName: '${name}' })
  })`)
  await until(page, "me.connection === 'connected'")
  return page
}

/** Makes two people contacts; resolves with their user ids. */
export async function befriendPages(one: Page, other: Page): Promise<readonly [string, string]> {
  const [first, second] = [await userIdOf(one), await userIdOf(other)]
  await one.evaluate(`me.contacts.request({ userId: '${second}' })`)
  await other.evaluate(`me.contacts.accept('${first}')`)
  return [first, second]
}

/** Puts the element into the page, in the place of everything else. */
export async function show(page: Page, tag: string, members = ''): Promise<void> {
  await page.evaluate(`{
    const main = document.createElement('main')
    const heading = Object.assign(document.createElement('h1'), { textContent: 'App' })
    main.append(heading, Object.assign(document.createElement('${tag}'), { me, ${members} }))
    // The app draws on in its own, which the page has no more.
    document.querySelector('main').replaceWith(main)
  }`)
}

/** A voice that goes on: beeps are too short for speech, and can fall between two looks at them. */
export const VOICE = `if (navigator.mediaDevices) {
  const { mediaDevices } = navigator
  const open = mediaDevices.getUserMedia.bind(mediaDevices)
  mediaDevices.getUserMedia = async wish => {
    const stream = await open(wish)
    const [beeps] = stream.getAudioTracks()
    if (beeps === undefined) return stream
    beeps.stop()
    const context = new AudioContext()
    const output = context.createMediaStreamDestination()
    const voice = context.createOscillator()
    voice.connect(output)
    voice.start()
    const [track] = output.stream.getAudioTracks()
    opened.push(track)
    return new MediaStream([track, ...stream.getVideoTracks()])
  }
}`

/** Until the script is true in the page. */
export async function until(page: Page, script: string): Promise<void> {
  const isSo = await page.evaluate(`(async () => {
    const began = performance.now()
    while (!(await (${script}))) {
      if (performance.now() - began > ${PATIENCE_MS / 4}) return false
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    return true
  })()`)
  if (isSo !== true) throw new Error(`not within ${PATIENCE_MS / 4} ms: ${script}`)
}

async function userIdOf(page: Page): Promise<string> {
  return String(await page.evaluate('me.userId'))
}

const NOTES = `
globalThis.opened = []
globalThis.sounds = []
const live = kind => opened.filter(track => track.kind === kind && track.readyState === 'live')
globalThis.live = live
const { mediaDevices } = navigator
const open = mediaDevices?.getUserMedia.bind(mediaDevices)
if (open) mediaDevices.getUserMedia = async wish => {
  const stream = await open(wish)
  opened.push(...stream.getTracks())
  return stream
}
globalThis.AudioContext = class extends AudioContext {
  constructor(options) {
    super(options)
    sounds.push(this)
  }
}
const plain = OscillatorNode
globalThis.OscillatorNode = class extends plain {
  constructor(context, options) {
    super(context, options)
    context.hasTone = true
  }
}
globalThis.tones = () => sounds.filter(({ hasTone, state }) => hasTone && state !== 'closed').length
`

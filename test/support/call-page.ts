/** `<callsign-call>` in a page of its own, with a call of stand-ins: as many people as a test wants, in any state. */

import { build } from 'esbuild'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'
import { builtProgram } from './programs.ts'

/** One element for all tests of a file. */
export async function bundleCallElement(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [builtProgram('src/ui/call/call-element')],
    bundle: true,
    platform: 'browser',
    format: 'iife',
    write: false,
    logLevel: 'silent',
  })
  return outputFiles[0]!.text
}

/** Opens a page with a call of these people until the end of the test; the first is the page's own user. */
export async function openCallPage(
  t: Test,
  browser: Browser,
  script: string,
  names: readonly string[],
  viewport: { readonly width: number; readonly height: number },
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport, ...options })
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.route('http://call.test/', route => route.fulfill({ contentType: 'text/html', body: PAGE }))
  await page.goto('http://call.test/')
  await page.evaluate(`(() => { ${script} })()`)
  await page.evaluate(STAND_INS)
  await page.evaluate(`begin(${JSON.stringify(names)})`)
  await page.locator('callsign-call h2').waitFor()
  return page
}

const PAGE = `<!doctype html><html lang="en"><title>Call</title><meta name="viewport" content="width=device-width">
<style>:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }</style>
<main><h1>App</h1><button id="before">Call Bob</button><input aria-label="Message"></main></html>`

/** \`told\` has what the page asked of the call. */
const STAND_INS = `
class Told {
  listeners = []
  on(name, listener) {
    const entry = { name, listener }
    this.listeners.push(entry)
    return () => this.listeners = this.listeners.filter(one => one !== entry)
  }
  emit(name, event) {
    for (const one of this.listeners) if (one.name === name) one.listener(event)
  }
}
window.told = []
const tell = name => async (...values) => void told.push([name, ...values])
const picture = hue => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 360 })
  const paper = canvas.getContext('2d')
  const draw = () => {
    paper.fillStyle = 'hsl(' + hue + ' 35% 40%)'
    paper.fillRect(0, 0, 640, 360)
    paper.fillStyle = 'hsl(' + hue + ' 40% 75%)'
    paper.beginPath()
    paper.arc(320, 150, 70, 0, 7)
    paper.ellipse(320, 350, 140, 110, 0, 0, 7)
    paper.fill()
  }
  draw()
  setInterval(draw, 200)
  return canvas.captureStream(5)
}
const at = index => new Date(Date.UTC(2030, 0, 1, 0, index)).toISOString()
const memberOf = (name, index) => ({
  userId: String(index + 1), name, displayName: name, state: 'joined', isHost: index === 0, invitedBy: '1',
  invitedAt: at(0), joinedAt: at(index), mediaName: name,
})
const peerOf = ({ userId }, index) => {
  const stream = index % 3 === 2 ? undefined : picture(index * 77)
  return {
    id: 'feed' + userId, userId, state: 'connected', quality: 'good', hasStream: stream !== undefined, hasPicture: stream !== undefined,
    hasScreen: false, isMuted: false, isSpeaking: false,
    play: video => { if (video.srcObject !== stream) video.srcObject = stream ?? null },
  }
}
window.begin = names => {
  const participants = names.map(memberOf)
  window.me = Object.assign(new Told(), {
    userId: '1', deviceId: '11', connection: 'connected', nowMs: () => Date.UTC(2030, 0, 1, 0, 3, 7),
    contacts: { all: async () => [...participants.slice(1), memberOf('Dora', 90)] },
    devices: { list: async () => ({ items: [] }) },
    join: tell('join'),
  })
  window.call = Object.assign(new Told(), {
    callId: '7', isVideo: true, isIncoming: false, state: 'active', participants, hostUserId: '1', isHost: true,
    startedAtMs: Date.UTC(2030, 0, 1), fingerprint: '90214 55310 06727 41988 20436 71852', keys: [{ epoch: 2 }],
    sealedFor: participants.map(({ userId }) => ({ userId, deviceId: userId + '1' })),
  })
  for (const name of ['leave', 'end', 'remove', 'invite', 'renewKey', 'grantKey', 'acceptDevice']) call[name] = tell(name)
  window.media = Object.assign(new Told(), {
    devices: {
      microphones: [{ id: 'm1', label: 'Built-in microphone' }, { id: 'm2', label: 'Headset' }],
      cameras: [{ id: 'c1', label: 'Front camera' }],
      speakers: [],
      chosen: { microphone: 'm2' },
    },
    useMicrophone: tell('useMicrophone'),
    view: {
      local: picture(200), screen: undefined, canShareScreen: true, problem: undefined, hasMicrophone: true, hasCamera: true,
      isMuted: false, isCameraOff: false, isSpeaking: false, isSpeakingMuted: false, isSoundOn: true, quality: 'good',
      isLinkLost: false, peers: participants.slice(1).map(peerOf),
    },
    show(changed) {
      this.view = { ...this.view, ...changed }
      this.emit('changed')
    },
    mute(isMuted) { told.push(['mute', isMuted]); this.show({ isMuted }) },
    coverCamera(isCameraOff) { told.push(['coverCamera', isCameraOff]); this.show({ isCameraOff }) },
    playSound(isSoundOn) { this.show({ isSoundOn }) },
    shareScreen: tell('shareScreen'),
  })
  window.become = changed => {
    Object.assign(call, changed)
    call.emit('changed')
    return document.querySelector('callsign-call').updateComplete
  }
  const element = Object.assign(document.createElement('callsign-call'), { me, call, media })
  element.addEventListener('left', ({ detail }) => told.push(['left', detail.reason]))
  document.body.append(element)
  return element.updateComplete
}
`

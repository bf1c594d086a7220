/** Tabs of one browser in a room of a real Janus, each with `@callsign/sdk/app/media` and a pretended camera and microphone. */

import { createHmac, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import type { Browser } from 'playwright-core'
import type { Test } from 'tap'
import type { Admission, GatewayMediaOptions, MediaStatistics } from '../../src/app/media/media.ts'
import { eventLoginsOf, listenForEvents } from '../../src/media/events-listener.ts'
import { JanusEvents } from '../../src/media/janus-events.ts'
import { RoomTokens } from '../../src/media/room-tokens.ts'
import { type BrowserPage, openBrowser, PATIENCE_MS, pagesOf } from './browser.ts'
import { EVENTS_USER, type Janus, startJanus } from './janus.ts'
import { MARKED_PICTURE } from './marked-picture.ts'
import { builtProgram } from './programs.ts'

export interface MediaHouse {
  readonly janus: Janus
  readonly browser: Browser
  readonly url: string
  readonly openPage: OpenPage
  /** Each hears of every feed's user, as from a server. */
  readonly tabs: MediaTab[]
  readonly userOfFeed: Map<string, string>
}

/** A page of some browser at the address, with camera and microphone. */
type OpenPage = (url: string) => Promise<BrowserPage>

/** One gateway and one browser for the tests of a file. Gateway and page listen at `0.0.0.0` for tabs in other networks. */
export async function openMediaHouse(t: Test, host = '127.0.0.1'): Promise<MediaHouse> {
  const janus = await startJanus(t, t.testdir(), { host })
  const browser = (await openBrowser(t))!
  const url = await serveMedia(t, host)
  const openPage = pagesOf(browser)
  const house: MediaHouse = { janus, browser, url, openPage, tabs: [], userOfFeed: new Map() }
  await vouchInTabs(t, house)
  return house
}

async function vouchInTabs(t: Test, { janus, tabs, userOfFeed }: MediaHouse): Promise<void> {
  const { tokenSecret, eventsPassword: password } = janus.secrets
  const events = new JanusEvents({
    tokens: new RoomTokens({ tokenSecret, clientUrl: janus.url }),
    monotonicMs: () => performance.now(),
    onRestarted: () => undefined,
    onFeeds({ userId }, _, feedIds) {
      for (const feed of feedIds) userOfFeed.set(String(feed), String(userId))
      // One may have been closed.
      for (const tab of tabs) tab.vouch(userOfFeed).catch(() => undefined)
    },
  })
  const logins = eventLoginsOf([{ name: 'janus', eventsLogin: { user: EVENTS_USER, password } }])
  const listener = await listenForEvents(
    { host: '127.0.0.1', port: janus.eventsPort },
    () => logins,
    (_, posted) => events.take(posted),
    () => undefined,
  )
  t.teardown(() => listener.close())
}

export interface Room {
  readonly id: number
  readonly secret: string
  /** Lets a device of the user in. */
  admit(
    userId: string,
    more?: { readonly forRoom?: number; readonly forSeconds?: number },
  ): Promise<Admission>
}

/** A room as the server makes it, in which all that is sent is of one codec. */
export async function openRoom(
  janus: Janus,
  videocodec = 'vp8',
  id = randomInt(2 ** 40),
  bitrate = 300_000,
): Promise<Room> {
  const secret = 'secret'
  const tokens: string[] = []
  const about = { room: id, secret }
  await janus.videoRoom({
    ...about,
    request: 'create',
    admin_key: janus.secrets.adminKey,
    is_private: true,
    signed_tokens: true,
    require_e2ee: true,
    require_pvtid: true,
    notify_joining: true,
    publishers: 32,
    audiocodec: 'opus',
    videocodec,
    bitrate,
    allowed: ['-'],
  })
  return {
    id,
    secret,
    async admit(userId, { forRoom = id, forSeconds = 3_600 } = {}) {
      const expiry = Math.floor(Date.now() / 1000) + forSeconds
      const sign = (text: string) =>
        `${text}:${createHmac('sha1', janus.secrets.tokenSecret).update(text).digest('base64')}`
      const device = `device=${userId}_1`
      const roomToken = sign(`${expiry},janus.plugin.videoroom,room=${forRoom},${device}`)
      const pluginToken = sign(`${expiry},janus,janus.plugin.videoroom,${device}`)
      tokens.push(roomToken)
      await janus.videoRoom({ ...about, request: 'allowed', action: 'add', allowed: tokens })
      return { url: janus.url, roomId: id, roomToken, pluginToken }
    },
  }
}

export interface TabOptions extends Omit<GatewayMediaOptions, 'callId'> {
  readonly callId?: string
  readonly fps?: number
  /** Pixels of a square's side: 40 unless given, for a picture of 320 by 240. */
  readonly side?: number
  /** Whether the picture is as restless as one of a real camera, so that it takes all the bits that it may. */
  readonly isRestless?: boolean
  /** Whether its frames go as they are, and what it receives too. */
  readonly isPlain?: boolean
  /** The call's key is 32 of it; 0 for no key yet. */
  readonly keyByte?: number
}

/** A tab whose `media` is in the room, and is heard and seen. */
export class MediaTab {
  readonly #page: BrowserPage
  readonly #house: MediaHouse
  readonly #start: string

  private constructor(page: BrowserPage, house: MediaHouse, start: string) {
    this.#page = page
    this.#house = house
    this.#start = start
  }

  /** Makes `media` with the key of epoch 1, and the tracks. */
  static async open(
    house: MediaHouse,
    { fps = 10, keyByte = 1, ...options }: TabOptions = {},
    openPage = house.openPage,
  ): Promise<MediaTab> {
    const text = JSON.stringify({ callId: '42', ...options })
    const page = await openPage(house.url)
    const tab = new MediaTab(page, house, `start(${text}, ${fps}, ${keyByte})`)
    house.tabs.push(tab)
    await tab.#begin()
    return tab
  }

  /** As by the browser's button: it is out of the room, and has another `media`. */
  async reload(): Promise<void> {
    await this.#page.goto(this.#house.url)
    await this.#begin()
  }

  async #begin(): Promise<void> {
    await this.#page.evaluate(this.#start)
    await this.vouch(this.#house.userOfFeed)
  }

  async vouch(userOfFeed: ReadonlyMap<string, string>): Promise<void> {
    await this.evaluate(`media.vouch(new Map(${JSON.stringify([...userOfFeed])}))`)
  }

  async join(admission: Admission): Promise<void> {
    await this.evaluate(`(window.admission = ${JSON.stringify(admission)}, media.join(admission))`)
  }

  async evaluate<Value>(script: string): Promise<Value> {
    const body = script.startsWith('{') ? script : `{ return (${script}) }`
    return (await this.#page.evaluate(`(async () => ${body})()`)) as Value
  }

  /** Until the script is true. Resolves with the milliseconds that it took. */
  async until(script: string): Promise<void> {
    const loop = `(async () => {
      const began = performance.now()
      while (!(await (${script}))) {
        if (performance.now() - began > ${PATIENCE_MS}) return false
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      return true
    })()`
    if (await this.#page.evaluate(loop)) return
    throw new Error(`not within ${PATIENCE_MS} ms: ${script}; ${JSON.stringify(await this.situation())}`)
  }

  /** For a failure's message. */
  async situation(): Promise<unknown> {
    return this.evaluate('{ return { state: media.state, events, statistics: await readStatistics() } }')
  }

  async statistics(): Promise<MediaStatistics & { readonly people: readonly PersonStatistics[] }> {
    return this.evaluate('readStatistics()')
  }

  /** Until sound and picture of so many members were opened, each `frames` more than now. */
  async receives(people: number, frames = 20): Promise<void> {
    await this.evaluate('noteFrames()')
    await this.until(`hasReceived(${people}, ${frames})`)
  }

  async close(): Promise<void> {
    await this.#page.close()
  }
}

export interface PersonStatistics {
  readonly userId: string
  readonly opened: Readonly<Record<string, number>>
  readonly failed: Readonly<Record<string, number>>
  readonly level: number
}

async function serveMedia(t: Test, host: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: { media: builtProgram('src/app/media/media'), worker: builtProgram('src/app/media/worker') },
    outdir: '/',
    bundle: true,
    platform: 'browser',
    format: 'esm',
    write: false,
    logLevel: 'silent',
  })
  const files = new Map(outputFiles.map(({ path, text }) => [path, text]))
  files.set('/worker.js', COUNTS + files.get('/worker.js'))
  const server = createServer(({ url = '' }, answer) => {
    const script = files.get(url)
    answer.setHeader('content-type', script === undefined ? 'text/html' : 'text/javascript')
    answer.end(script ?? PAGE)
  })
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** Tells the tab whenever the worker asks for a picture that needs no other; and the sizes of frames of sound, when asked. */
const COUNTS = `
const ask = RTCRtpScriptTransformer.prototype.sendKeyFrameRequest
const asks = new BroadcastChannel('asks')
RTCRtpScriptTransformer.prototype.sendKeyFrameRequest = function () {
  asks.postMessage(1)
  return ask.call(this)
}
let sizes = new Map()
const asked = new BroadcastChannel('sizes')
asked.onmessage = () => {
  asked.postMessage([...sizes])
  sizes = new Map()
}
const { pipeTo } = ReadableStream.prototype
ReadableStream.prototype.pipeTo = function (to) {
  const transform = (frame, controller) => {
    controller.enqueue(frame)
    if (!(frame instanceof RTCEncodedAudioFrame)) return
    const [first] = new Uint8Array(frame.data)
    // Without the header of SFrame, whose counter takes more and more bytes.
    const size = frame.data.byteLength - 1 - (((first >> 4) & 7) + 1) - (first & 8 ? (first & 7) + 1 : 0)
    sizes.set(size, (sizes.get(size) ?? 0) + 1)
  }
  return pipeTo.call(this.pipeThrough(new TransformStream({ transform })), to)
}
`

const PAGE = `<!doctype html><title>media</title><script type="module">
import { GatewayMedia } from '/media.js'
window.GatewayMedia = GatewayMedia
window.events = []
window.keyFrameAsks = 0
new BroadcastChannel('asks').onmessage = () => keyFrameAsks++
const sizes = new BroadcastChannel('sizes')
// Sizes of sound frames that left or came since the last call, with their counts.
window.soundSizes = () => new Promise(resolve => {
  sizes.onmessage = ({ data }) => resolve(data)
  sizes.postMessage(1)
})
window.key = byte => new Uint8Array(32).fill(byte)
window.sockets = []
window.isCut = false
window.WebSocket = class extends WebSocket {
  constructor(url, protocol) {
    super(isCut ? 'ws://127.0.0.1:9' : url, protocol)
    sockets.push(this)
  }
}
window.connections = []
window.RTCPeerConnection = class extends RTCPeerConnection {
  constructor(configuration) {
    super(configuration)
    connections.push(this)
  }
}
// Header extensions of what this tab sends.
window.extensions = () => connections.flatMap(each => each.getSenders().flatMap(sender => sender.getParameters().headerExtensions.map(({ uri }) => uri)))
// As Chromium does now and then: the worker never hears of these transforms.
window.isLosing = false
const Transform = RTCRtpScriptTransform
const deaf = new Worker(URL.createObjectURL(new Blob([''])))
window.RTCRtpScriptTransform = function (worker, options) {
  return new Transform(isLosing ? deaf : worker, options)
}
// As a member who changed the client has it: frames go as they are.
const PLAIN = \`
  onrtctransform = ({ transformer }) => transformer.readable.pipeTo(transformer.writable)
  onmessage = ({ data }) => {
    if (data.kind === 'call') postMessage({ kind: 'ready' })
    if (data.kind === 'counts') postMessage({ kind: 'counts', tracks: new Map() })
  }\`
// Not the one that the build put into the module: it counts.
const newWorker = () => new Worker('/worker.js', { type: 'module' })
window.start = async ({ isPlain, isRestless, side = 40, ...rest }, fps, keyByte) => {
  const options = { newWorker, ...rest }
  if (isPlain) options.newWorker = () => new Worker(URL.createObjectURL(new Blob([PLAIN])))
  const media = new GatewayMedia(options)
  window.media = media
  for (const name of ['participant', 'gone', 'kicked', 'error'])
    media.on(name, event => events.push([name, event?.userId ?? event?.reason ?? event?.code]))
  media.on('state', state => events.push(['state', state]))
  media.on('participant', participant => play(participant))
  const sound = await navigator.mediaDevices.getUserMedia({ audio: true })
  window.source = drawMarks(fps, side, isRestless)
  await media.send('microphone', sound.getAudioTracks()[0])
  await media.send('camera', source)
  if (keyByte === 0) return
  media.setKey(1, key(keyByte))
  media.useKey(1)
}
window.count = (name, what) => events.filter(event => event[0] === name && (what === undefined || event[1] === what)).length

${MARKED_PICTURE}
// Played, for the browser decodes nothing else.
const playing = new Map()
function play({ feed, userId, microphone, camera, screen }) {
  for (const [name, stream] of Object.entries({ microphone, camera, screen })) {
    if (stream === undefined || playing.get(feed + name)?.track === stream.track) continue
    const element = document.createElement(name === 'microphone' ? 'audio' : 'video')
    element.autoplay = true
    element.srcObject = new MediaStream([stream.track])
    playing.set(feed + name, { track: stream.track, element, userId, name })
    document.body.append(element)
  }
}
const pictureOf = userId => [...playing.values()].findLast(one => one.userId === userId && one.name === 'camera')?.element
window.picturesOf = userId => pictureOf(userId)?.getVideoPlaybackQuality().totalVideoFrames ?? 0
window.widthOf = userId => pictureOf(userId)?.videoWidth
window.marksOf = userId => marksIn(pictureOf(userId))

window.readStatistics = async () => {
  const { own, participants } = await media.statistics()
  return { own, people: media.participants.map(one => ({ userId: one.userId, ...participants.get(one.feed) })) }
}
window.failures = async () => (await readStatistics()).people.flatMap(({ userId, failed }) => Object.entries(failed ?? {}).map(([reason, count]) => [userId, reason, count]))
window.opened = async (userId, name) => (await readStatistics()).people.filter(one => one.userId === userId).reduce((sum, one) => sum + (one.opened?.[name] ?? 0), 0)
let noted = new Map()
window.noteFrames = async () => { noted = new Map([...(await media.statistics()).participants].map(([feed, one]) => [feed, one.opened])) }
window.hasReceived = async (count, frames) => {
  const { participants } = await media.statistics()
  const full = [...participants].filter(([feed, { opened }]) => ['microphone', 'camera'].every(name => (opened[name] ?? 0) >= (noted.get(feed)?.[name] ?? 0) + frames))
  return full.length === count
}
</script>`

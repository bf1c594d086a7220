/** Tabs of one browser in a room of a real LiveKit, with its own SDK and a call's keys, each with a marked picture and sound. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import { AccessToken, RoomServiceClient } from 'livekit-server-sdk'
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'
import { PATIENCE_MS, WITH_CAMERA } from './browser.ts'
import type { LiveKit } from './livekit.ts'
import { MARKED_PICTURE } from './marked-picture.ts'
import { builtProgram } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

/** A participant of the room. Members of the call have one device each, with the user's id. */
export interface Person {
  readonly label: string
  readonly userId: string
}

export interface TabKind {
  /** `call`: with the call's keys. `clear`: like any client of the gateway, without keys. */
  readonly kind: 'call' | 'clear'
  readonly isSending?: boolean
}

export class LiveKitHouse {
  readonly #livekit: LiveKit
  readonly #browser: Browser
  readonly #url: string
  readonly rooms: RoomServiceClient

  private constructor(livekit: LiveKit, browser: Browser, url: string) {
    this.#livekit = livekit
    this.#browser = browser
    this.#url = url
    this.rooms = new RoomServiceClient(livekit.apiUrl, livekit.apiKey, livekit.apiSecret)
  }

  static async open(t: Test, livekit: LiveKit, browser: Browser): Promise<LiveKitHouse> {
    return new LiveKitHouse(livekit, browser, await serve(t))
  }

  async tokenFor(roomId: number, { label: identity }: Person): Promise<string> {
    const token = new AccessToken(this.#livekit.apiKey, this.#livekit.apiSecret, { identity, ttl: 3_600 })
    token.addGrant({ room: String(roomId), roomJoin: true, canPublish: true, canSubscribe: true })
    return token.toJwt()
  }

  /** Opens a tab whose call has these people, and enters the room as the first of them. */
  async enter(roomId: number, people: readonly Person[], kind: TabKind): Promise<LiveKitTab> {
    const page = await (await this.#browser.newContext(WITH_CAMERA)).newPage()
    await page.goto(this.#url)
    const media = { kind: 'livekit', keySize: 256, url: this.#livekit.url }
    const token = await this.tokenFor(roomId, people[0]!)
    const members = people.map(({ label, userId }) => ({
      userId,
      deviceId: userId,
      state: 'joined',
      identity: label,
    }))
    const call = { callId: CALL_ID, state: 'active', roomId, self: members[0], participants: members }
    const tab = new LiveKitTab(page)
    await tab.evaluate(
      `start(${JSON.stringify({ ...call, media: { ...media, token } })}, ${JSON.stringify(kind)})`,
    )
    return tab
  }
}

export class LiveKitTab {
  readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  async evaluate<Value>(script: string): Promise<Value> {
    return (await this.page.evaluate(`(async () => (${script}))()`)) as Value
  }

  /** Has keys of these epochs, each 32 times its number or `byte`, and seals with the first's. */
  async has(sending: number, epochs: readonly number[], byte?: number): Promise<void> {
    await this.evaluate(`hasKeys(${sending}, ${JSON.stringify(epochs)}, ${byte})`)
  }

  /** Until the script is true. */
  async until(script: string): Promise<void> {
    const loop = `(async () => {
      const began = performance.now()
      while (!(await (${script}))) {
        if (performance.now() - began > ${PATIENCE_MS / 4}) return false
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      return true
    })()`
    if (await this.page.evaluate(loop)) return
    const situation = await this.evaluate('situation()')
    throw new Error(`not within ${PATIENCE_MS / 4} ms: ${script}; ${JSON.stringify(situation)}`)
  }

  /** Until picture and sound of the person go on: further pictures with the marks, and further energy. */
  async receives({ label }: Pick<Person, 'label'>): Promise<void> {
    await this.evaluate(`note('${label}')`)
    await this.until(`goesOn('${label}')`)
  }

  /** Whether nothing of the person comes while another's picture and sound go on. */
  async isDeafTo(one: Person, other: Person): Promise<boolean> {
    await this.evaluate(`note('${one.label}')`)
    await this.receives(other)
    return this.evaluate(`standsStill('${one.label}')`)
  }
}

/** LiveKit's `Room`, and built modules of `src/app`, as one script; and the worker that LiveKit encrypts in. */
export async function bundleLiveKit(
  modules: readonly string[],
  format: 'esm' | 'iife',
): Promise<{ readonly script: string; readonly worker: string }> {
  const own = modules.map(name => `export * from '${builtProgram(`src/app/${name}`)}'`)
  const { outputFiles } = await build({
    stdin: {
      contents: ["export { Room } from 'livekit-client'", ...own].join('\n'),
      resolveDir: PROJECT_ROOT,
    },
    bundle: true,
    platform: 'browser',
    format,
    globalName: 'app',
    write: false,
    logLevel: 'silent',
  })
  const worker = join(PROJECT_ROOT, 'node_modules/livekit-client/dist/livekit-client.e2ee.worker.js')
  return { script: outputFiles[0]!.text, worker: readFileSync(worker, 'utf8') }
}

async function serve(t: Test): Promise<string> {
  const { script: sdk, worker } = await bundleLiveKit(['livekit/livekit'], 'esm')
  const files = new Map([
    ['/livekit.js', sdk],
    ['/worker.js', worker],
  ])
  const server = createServer(({ url = '' }, answer) => {
    const script = files.get(url)
    answer.setHeader('content-type', script === undefined ? 'text/html' : 'text/javascript')
    answer.end(script ?? PAGE)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** A script for pages: 'watch(room)' plays all that comes, 'send(room)' sends sound and the marked picture. */
export const WATCHED_ROOM = `
${MARKED_PICTURE}
window.errors = []
window.lost = []
window.watch = room => {
  room.on('encryptionError', ({ message }) => lost.push(message))
  room.on('trackSubscribed', (track, publication, { identity }) => play(track, identity))
}
window.send = async room => {
  const sound = await navigator.mediaDevices.getUserMedia({ audio: true })
  await room.localParticipant.publishTrack(sound.getAudioTracks()[0], { source: 'microphone' })
  const picture = { source: 'camera', simulcast: false, videoCodec: 'vp8' }
  await room.localParticipant.publishTrack(drawMarks(10, 40), picture)
}
// Played, for the browser decodes nothing else.
const playing = new Map()
function play(track, label) {
  const element = track.attach()
  document.body.append(element)
  playing.set(label + ' ' + track.kind, { element, track })
}
const picturesOf = label => playing.get(label + ' video')?.element.getVideoPlaybackQuality().totalVideoFrames ?? 0
async function energyOf(label) {
  const { track } = playing.get(label + ' audio') ?? {}
  const report = await track?.getRTCStatsReport()
  return [...(report?.values() ?? [])].find(({ type }) => type === 'inbound-rtp')?.totalAudioEnergy ?? 0
}
window.marksOf = label => marksIn(playing.get(label + ' video')?.element)
const noted = new Map()
window.note = async label => { noted.set(label, { pictures: picturesOf(label), energy: await energyOf(label), ...tracksOf(label) }) }
const tracksOf = label => ({ video: playing.get(label + ' video')?.track, audio: playing.get(label + ' audio')?.track })
// How much has come since. The tracks may have been replaced.
async function since(label) {
  const before = noted.get(label)
  const { video, audio } = tracksOf(label)
  const pictures = picturesOf(label) - (video === before.video ? before.pictures : 0)
  const energy = (await energyOf(label)) - (audio === before.audio ? before.energy : 0)
  return { pictures, energy }
}
window.goesOn = async label => {
  const { pictures, energy } = await since(label)
  return pictures >= 5 && marksOf(label) > 0.9 && energy > 0.001
}
window.standsStill = async label => {
  const { pictures, energy } = await since(label)
  // One or two pictures may have been decoded before.
  return pictures <= 2 && energy < 0.0005
}
window.situation = async () => {
  const labels = [...new Set([...playing.keys()].map(name => name.split(' ')[0]))]
  const people = await Promise.all(labels.map(async label => [label, picturesOf(label), marksOf(label), await energyOf(label)]))
  return { call: [call.state, call.ending, call.media?.state, call.keys.map(({ epoch }) => epoch)], state: room.state, people, lost, errors, frames: window.frames?.length }
}
`

/** The call of all tabs. */
export const CALL_ID = '42'

const PAGE = `<!doctype html><title>livekit</title><script type="module">
import { Room, joinLiveKit, liveKitEncryption } from '/livekit.js'
const listeners = new Set()
const tell = () => { for (const listener of [...listeners]) listener() }
window.change = members => { Object.assign(call, members); tell() }
window.hasKeys = (sending, epochs, byte) => {
  const keys = epochs.map(epoch => ({ epoch, key: new Uint8Array(32).fill(byte ?? epoch), fingerprint: '' + epoch }))
  change({ keys, sendingKey: keys.find(({ epoch }) => epoch === sending) })
}
// Encoded frames as they arrive.
window.frames = []
const tapped = new WeakSet()
function tapFrames() {
  const Peer = RTCPeerConnection
  window.RTCPeerConnection = class extends Peer {
    constructor(configuration) {
      super({ ...configuration, encodedInsertableStreams: true })
      this.setConfiguration = next => super.setConfiguration({ ...next, encodedInsertableStreams: true })
      this.addEventListener('track', ({ receiver, track }) => {
        // One that is used again keeps its streams.
        if (tapped.has(receiver)) return
        tapped.add(receiver)
        const { readable, writable } = receiver.createEncodedStreams()
        const tap = new TransformStream({ transform(frame, controller) {
          if (frames.length < 4000) frames.push({ kind: track.kind, type: frame.type, octets: [...new Uint8Array(frame.data)] })
          controller.enqueue(frame)
        } })
        void readable.pipeThrough(tap).pipeTo(writable)
      })
    }
  }
}
window.start = async (members, { kind, isSending = true }) => {
  window.call = {
    keys: [], sendingKey: undefined, ...members,
    on: (name, listener) => (listeners.add(listener), () => listeners.delete(listener)),
  }
  if (kind === 'call') {
    hasKeys(1, [1])
    const worker = new Worker('/worker.js')
    window.room = new Room({ encryption: liveKitEncryption(call, worker) })
    window.leave = joinLiveKit(call, room, error => errors.push(String(error)))
  } else {
    // A sender whose frames can be looked at would send none.
    if (!isSending) tapFrames()
    window.room = new Room()
    await room.connect(call.media.url, call.media.token)
  }
  watch(room)
  while (room.state !== 'connected') await new Promise(resolve => setTimeout(resolve, 20))
  if (isSending) await send(room)
}
${WATCHED_ROOM}
</script>`

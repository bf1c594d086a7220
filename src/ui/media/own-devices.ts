/**
 * The own microphone and camera, in a call and before it: opens and switches them, and lets the camera's light go out.
 * Each kind has one wish, and the browser is asked for one device at a time: many can't open two.
 */

import type { Call, CallsignError } from '../../app/app.ts'
import { Emitter } from '../../app/emitter.ts'
import { type Word, word } from '../words.ts'
import {
  type ChosenDevices,
  type DeviceKind,
  idOf,
  type KeptDevices,
  keepDevices,
  listDevices,
  type MediaDeviceList,
  onDeviceChange,
  readKept,
} from './device-list.ts'
import { VoiceLevel } from './voice-level.ts'

/** For the next call, as the lobby gives it. An id, the last choice or the browser's by `true`, or none. */
export interface MediaChoice {
  readonly microphone?: string | boolean
  readonly camera?: string | boolean
  readonly speaker?: string
  /** Starts the worker that encrypts, where the page's policy forbids one of a Blob URL. */
  readonly newWorker?: () => Worker
}

type OwnKind = 'microphone' | 'camera'

export interface OwnDevicesEvents {
  readonly changed: undefined
  /** Another track is there for it, or none. */
  readonly track: OwnKind
  readonly error: CallsignError
}

export class OwnDevices extends Emitter<OwnDevicesEvents> {
  /** Anew with each track. */
  local: MediaStream | undefined
  problem: string | undefined
  devices: MediaDeviceList
  readonly #tracks = new Map<OwnKind, MediaStreamTrack>()
  readonly #isOff: Record<OwnKind, boolean>
  readonly #endList: () => void
  #level: VoiceLevel | undefined
  #inOrder: Promise<void> = Promise.resolve()
  #isClosed = false
  /** As its user chose; where they did not, `devices.chosen` has the browser's choice. */
  #wished: KeptDevices

  constructor({ microphone = true, camera = false, speaker }: MediaChoice) {
    super()
    this.#isOff = { microphone: microphone === false, camera: camera === false }
    const given = Object.entries({ microphone, camera, speaker }).flatMap(([kind, id]) =>
      typeof id === 'string' ? [[kind, { id, label: '' }]] : [],
    )
    this.#wished = { ...readKept(), ...Object.fromEntries(given) }
    this.devices = { microphones: [], cameras: [], speakers: [], chosen: {} }
    this.#endList = onDeviceChange(() => void this.#list())
    void this.#list()
  }

  get isMuted(): boolean {
    return this.#isOff.microphone
  }

  get isCameraOff(): boolean {
    return this.#isOff.camera
  }

  /** Loudness of the microphone, 0 to 1, also while it is muted. */
  get level(): number {
    return this.#level?.read() ?? 0
  }

  /** Undefined where there is none, or it is off. */
  track(kind: OwnKind): MediaStreamTrack | undefined {
    return this.#tracks.get(kind)
  }

  /** Opens the chosen devices: both by one question of the browser. */
  open(): Promise<void> {
    return this.#do(async () => {
      const kinds = KINDS.filter(kind => !this.#isOff[kind])
      const tries = kinds.length === 2 ? [kinds, ['camera'] as const, ['microphone'] as const] : [kinds]
      for (const these of tries) if (these.length > 0 && (await this.#ask(these)) !== 'again') break
      if (kinds.includes('camera') && this.#tracks.has('microphone') && !this.#tracks.has('camera'))
        this.problem ??= word('no-camera-sound-only')
      // What was switched off while the browser asked stays so.
      for (const kind of kinds) this.#isOff[kind] ||= !this.#tracks.has(kind)
    })
  }

  mute(isMuted: boolean): Promise<void> {
    this.#isOff.microphone = isMuted
    const track = this.#tracks.get('microphone')
    if (track !== undefined) track.enabled = !isMuted
    this.emit('changed', undefined)
    return track === undefined && !isMuted ? this.#open('microphone') : Promise.resolve()
  }

  /** Off ends the track: the camera's light goes out. */
  coverCamera(isCameraOff: boolean): Promise<void> {
    this.#isOff.camera = isCameraOff
    if (!isCameraOff) return this.#open('camera')
    this.#put('camera', undefined)
    this.emit('changed', undefined)
    return Promise.resolve()
  }

  useMicrophone(id: string): Promise<void> {
    return this.#use('microphone', id)
  }

  useCamera(id: string): Promise<void> {
    return this.#use('camera', id)
  }

  useSpeaker(id: string): Promise<void> {
    return this.#use('speaker', id)
  }

  close(): void {
    this.#isClosed = true
    this.#endList()
    for (const kind of KINDS) this.#put(kind, undefined)
  }

  async #use(kind: DeviceKind, id: string): Promise<void> {
    const label = this.devices[LISTS[kind]].find(one => one.id === id)?.label ?? ''
    this.#wished = { ...this.#wished, [kind]: { id, label } }
    this.devices = { ...this.devices, chosen: { ...this.devices.chosen, [kind]: id } }
    keepDevices(this.#wished)
    this.emit('changed', undefined)
    if (kind === 'speaker' || !this.#tracks.has(kind)) return
    this.#put(kind, undefined)
    await this.#open(kind)
  }

  #open(kind: OwnKind): Promise<void> {
    return this.#do(async () => {
      if (this.#isOff[kind] || this.#tracks.has(kind)) return
      this.problem = undefined
      await this.#ask([kind])
      this.#isOff[kind] ||= !this.#tracks.has(kind)
    })
  }

  #do(work: () => Promise<void>): Promise<void> {
    this.#inOrder = this.#inOrder.then(async () => {
      if (this.#isClosed) return
      await work()
      if (this.#isClosed) return
      this.emit('changed', undefined)
      // Labels come with the first leave.
      await this.#list()
    })
    return this.#inOrder
  }

  /** `again`: another wish may be granted. One that was pulled out since gives way to the browser's choice. */
  async #ask(kinds: readonly OwnKind[], wished = this.#wished): Promise<'done' | 'again'> {
    const present = await listDevices()
    if (this.#isClosed) return 'done'
    const wish = (kind: OwnKind) => {
      const id = idOf(wished[kind], present[LISTS[kind]])
      return kinds.includes(kind) && (id === undefined ? true : { deviceId: { exact: id } })
    }
    try {
      const stream = await navigator.mediaDevices.getUserMedia({
        audio: wish('microphone'),
        video: wish('camera'),
      })
      this.problem = undefined
      for (const track of stream.getTracks()) this.#take(track)
      return 'done'
    } catch (error) {
      if (error instanceof OverconstrainedError) return this.#ask(kinds, {})
      const name = error instanceof DOMException ? error.name : 'NotFoundError'
      const isCamera = kinds.includes('camera')
      const what = word(kinds.length === 2 ? 'camera-or-microphone' : isCamera ? 'camera' : 'microphone')
      this.problem ??= word(PROBLEMS[name] ?? 'device-missing', what)
      return name === 'NotAllowedError' ? 'done' : 'again'
    }
  }

  /** The browser may ask for long, and the wish may have changed. */
  #take(track: MediaStreamTrack): void {
    const kind = track.kind === 'audio' ? 'microphone' : 'camera'
    if (this.#isClosed || (kind === 'camera' && this.#isOff.camera)) return track.stop()
    track.enabled = kind === 'camera' || !this.#isOff.microphone
    track.onended = () => this.#onEnded(kind)
    this.#put(kind, track)
  }

  /** It was pulled out: another microphone takes over, the camera is off. */
  #onEnded(kind: OwnKind): void {
    this.#put(kind, undefined)
    if (kind === 'camera') this.#isOff.camera = true
    this.emit('changed', undefined)
    if (kind === 'microphone') void this.#open(kind)
  }

  #put(kind: OwnKind, track: MediaStreamTrack | undefined): void {
    const before = this.#tracks.get(kind)
    if (before === track) return
    if (before !== undefined) {
      before.onended = null
      before.stop()
    }
    if (track === undefined) this.#tracks.delete(kind)
    else this.#tracks.set(kind, track)
    if (kind === 'microphone') {
      this.#level?.end()
      this.#level = track && new VoiceLevel(track)
    }
    const all = [...this.#tracks.values()]
    this.local = all.length === 0 ? undefined : new MediaStream(all)
    this.emit('track', kind)
  }

  async #list(): Promise<void> {
    const list = await listDevices()
    if (this.#isClosed) return
    const wished = ALL_KINDS.map(kind => [kind, idOf(this.#wished[kind], list[LISTS[kind]])] as const)
    const open = [...this.#tracks].map(([kind, track]) => [kind, track.getSettings().deviceId] as const)
    const chosen = [...wished, ...open].filter(([, id]) => id !== undefined)
    this.devices = { ...list, chosen: Object.fromEntries(chosen) as ChosenDevices }
    this.emit('changed', undefined)
  }
}

const choices = new WeakMap<Call, MediaChoice>()

/** The call is answered with this: `new Media` of the call takes it before the page's own. */
export function rememberChoice(call: Call, choice: MediaChoice): void {
  choices.set(call, choice)
}

export function choiceFor(call: Call): MediaChoice | undefined {
  return choices.get(call)
}

const KINDS = ['microphone', 'camera'] as const
const ALL_KINDS = [...KINDS, 'speaker'] as const
const LISTS = { microphone: 'microphones', camera: 'cameras', speaker: 'speakers' } as const
const PROBLEMS: Readonly<Record<string, Word>> = {
  NotAllowedError: 'device-refused',
  NotReadableError: 'device-held',
}

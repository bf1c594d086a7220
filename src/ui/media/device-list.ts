/** The microphones, cameras and speakers of this computer, and the ones that its user chose last. */

/** A member is left out for the browser's choice. */
export interface ChosenDevices {
  readonly microphone?: string
  readonly camera?: string
  readonly speaker?: string
}

export type DeviceKind = keyof ChosenDevices

export interface MediaDevice {
  readonly id: string
  /** Empty until the browser has let the page use one. */
  readonly label: string
}

export interface MediaDeviceList {
  readonly microphones: readonly MediaDevice[]
  readonly cameras: readonly MediaDevice[]
  /** Empty where the browser plays by the system's choice alone. */
  readonly speakers: readonly MediaDevice[]
  readonly chosen: ChosenDevices
}

export async function listDevices(): Promise<Omit<MediaDeviceList, 'chosen'>> {
  const all = (await navigator.mediaDevices?.enumerateDevices().catch(() => [])) ?? []
  const of = (kind: MediaDeviceKind) =>
    all.filter(one => one.kind === kind).map(({ deviceId: id, label }) => ({ id, label }))
  return {
    microphones: of('audioinput'),
    cameras: of('videoinput'),
    speakers: 'setSinkId' in HTMLMediaElement.prototype ? of('audiooutput') : [],
  }
}

/** Calls the listener whenever a device was plugged in or pulled out. Returns the function that ends it. */
export function onDeviceChange(listener: () => void): () => void {
  navigator.mediaDevices?.addEventListener('devicechange', listener)
  return () => navigator.mediaDevices?.removeEventListener('devicechange', listener)
}

/** Some browsers give a device another id on each page: then its label tells. */
export type KeptDevices = { readonly [Kind in DeviceKind]?: MediaDevice }

export function readKept(): KeptDevices {
  try {
    const kept: KeptDevices = JSON.parse(localStorage.getItem(KEY) ?? '{}')
    const entries = Object.entries(kept).filter(([, one]) => typeof one?.id === 'string')
    return Object.fromEntries(entries)
  } catch {
    // The page may keep nothing, or another program wrote it.
    return {}
  }
}

export function keepDevices(kept: KeptDevices): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept))
  } catch {
    // The next call begins with the browser's choice.
  }
}

/** The present id of a device. Undefined for one that was pulled out. */
export function idOf(kept: MediaDevice | undefined, present: readonly MediaDevice[]): string | undefined {
  const named = present.filter(({ id }) => id !== '')
  // Before the browser gives leave, nothing has an id.
  if (kept === undefined || named.length === 0) return kept?.id
  const found =
    named.find(({ id }) => id === kept.id) ?? named.find(({ label }) => label !== '' && label === kept.label)
  return found?.id
}

const KEY = 'callsign.devices'

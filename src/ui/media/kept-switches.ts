/** Whether microphone and camera are off in a call, kept in the tab: a page that is loaded again goes on as its user left it. */

import type { MediaChoice } from './own-devices.ts'

interface Switches {
  readonly isMuted: boolean
  readonly isCameraOff: boolean
}

/** The choice, but for what the user had switched in this call before the page was loaded again. */
export function withKeptSwitches(callId: string, choice: MediaChoice): MediaChoice {
  const kept = readSwitches(callId)
  if (kept === undefined) return choice
  const { microphone, camera } = choice
  return {
    ...choice,
    microphone: kept.isMuted ? false : microphone || true,
    camera: kept.isCameraOff ? false : camera || true,
  }
}

export function keepSwitches(callId: string, switches: Switches): void {
  try {
    sessionStorage.setItem(KEY + callId, JSON.stringify(switches))
  } catch {
    // The next page begins with the app's choice.
  }
}

/** The call has ended. */
export function forgetSwitches(callId: string): void {
  try {
    sessionStorage.removeItem(KEY + callId)
  } catch {
    // Nothing was kept.
  }
}

function readSwitches(callId: string): Partial<Switches> | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(KEY + callId) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

const KEY = 'callsign.switches.'

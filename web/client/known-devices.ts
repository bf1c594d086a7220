/**
 * Other users' devices that this browser has seen proven by the key log, so that a new one is announced. A device
 * that an operator adds to a user is legal in the log, and gets every call's key: only that user can tell that it is
 * not theirs.
 */

export interface ProvenDevice {
  readonly userId: string
  readonly displayName: string
  readonly deviceId: string
  readonly publicKey: string
}

/** A person's keys by device. */
type Keys = Readonly<Record<string, string>>

export class KnownDevices {
  readonly #name: string

  constructor(ownUserId: string) {
    this.#name = `callsign.devices.${ownUserId}`
  }

  /** Remembers all devices of these users; returns a sentence for each user whose devices have changed. */
  see(devices: readonly ProvenDevice[]): readonly string[] {
    const known = new Map<string, Keys>(JSON.parse(localStorage.getItem(this.#name) ?? '[]'))
    const names = new Map(devices.map(({ userId, displayName }) => [userId, displayName]))
    const news = [...names].flatMap(([userId, displayName]) => {
      const own = devices.filter(device => device.userId === userId)
      const now: Keys = Object.fromEntries(own.map(({ deviceId, publicKey }) => [deviceId, publicKey]))
      const before = known.get(userId)
      // At the end again: who was not met for longest is forgotten first.
      known.delete(userId)
      known.set(userId, now)
      return before === undefined ? [] : newsOf(displayName, before, now)
    })
    localStorage.setItem(this.#name, JSON.stringify([...known].slice(-PEOPLE_MAX)))
    return news
  }
}

function newsOf(displayName: string, before: Keys, now: Keys): readonly string[] {
  const changed = Object.keys(now).filter(id => before[id] !== now[id])
  if (changed.length === 0) return []
  const what = changed.some(id => before[id] === undefined) ? 'a new device' : 'a device with a new key'
  return [`${displayName} has ${what}, and calls are encrypted for it too. Ask whether it is really theirs.`]
}

/** With ten devices each, about a quarter of what browsers keep for an address. */
const PEOPLE_MAX = 1_000

/**
 * Other people as this browser knows them: their devices and device lists, and what the page says when these change. A
 * server could name a device that its owner never had; a list that the owner's devices have signed can't be made up.
 */

import type { DeviceEvent, KnownUser, KnownUserStore } from '../../src/client/client.ts'

/** In the browser's storage, for one person and one log. */
export function knownUserStore(ownUserId: string, vkey: string): KnownUserStore {
  const name = `callsign.people.${ownUserId}.${vkey}`
  const read = () => new Map<string, KnownUser>(JSON.parse(localStorage.getItem(name) ?? '[]'))
  return {
    get: userId => read().get(userId),
    put: known => {
      const people = read()
      // At the end again: who was not met for longest is forgotten first.
      people.delete(known.userId)
      people.set(known.userId, known)
      localStorage.setItem(name, JSON.stringify([...people].slice(-PEOPLE_MAX)))
    },
  }
}

/** A sentence for each change that people are to hear of. */
export function sentencesOf(displayName: string, events: readonly DeviceEvent[]): readonly string[] {
  return [...new Set(events.flatMap(({ kind }) => SENTENCES[kind]?.(displayName) ?? []))]
}

const SENTENCES: Readonly<Partial<Record<DeviceEvent['kind'], (name: string) => string>>> = {
  'added-by-list': name => `${name} has a new device, which another device of theirs has approved.`,
  reset: name =>
    `${name} has started over on a new device. Ask whether that is so before you say anything private.`,
  unlisted: name =>
    `The server names a device of ${name}’s that ${name} has not approved. Nothing is encrypted for it.`,
  added: name =>
    `${name} has a new device, and calls are encrypted for it too. Ask whether it is really theirs.`,
  replaced: name =>
    `${name} has a device with a new key, and calls are encrypted for it too. Ask whether it is really theirs.`,
}

/** With ten devices each, about a quarter of what browsers keep for an address. */
const PEOPLE_MAX = 1_000

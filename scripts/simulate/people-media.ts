/** Sound and picture of fake users: has a browser join the room of each call that one of them is in, with the call's keys. */

import type { Call } from '../../src/app/app.ts'
import { messageOf } from '../../src/errors.ts'
import type { MediaReport, MediaRequest, SeenCall } from '../../web/simulator/messages.ts'
import { CHROMIUM } from '../support/chromium.ts'
import { MediaBrowser } from './media-browser.ts'
import { sentenceOf } from './phone.ts'

export interface PeopleMediaOptions {
  /** The person's sound and picture are in the room, for the first time or again. */
  readonly onConnected: (userId: string) => void
  /** A sentence about a person's media, or about all. */
  readonly onTrouble: (sentence: string, userId?: string) => void
}

interface Followed {
  readonly call: Call
  /** They end the listening to it. */
  readonly stops: readonly (() => void)[]
}

export class PeopleMedia {
  readonly #options: PeopleMediaOptions
  /** By user id. */
  readonly #followed = new Map<string, Followed>()
  /** Opened when the first person has a key. */
  #browser: Promise<MediaBrowser> | undefined
  #isClosing = false

  constructor(options: PeopleMediaOptions) {
    this.#options = options
  }

  /** Why people can have no media with this server, as a sentence. */
  static async missing(url: string): Promise<string | undefined> {
    if (CHROMIUM === undefined) return NO_CHROMIUM
    const meta = await fetch(`${url}/app/api/meta`)
    const { features } = (await meta.json()) as { readonly features: { readonly media?: string } }
    return features.media === 'janus' ? undefined : NO_GATEWAY
  }

  /** Goes along with the call until its end, or `leave`. */
  follow(userId: string, name: string, call: Call): void {
    this.leave(userId)
    const show = () => {
      if (call.state === 'ended') return this.leave(userId)
      if (call.keys.length > 0) this.#tell({ kind: 'call', person: userId, name, call: seen(call) })
    }
    const admit = () => {
      show()
      this.#tell({ kind: 'admitted', person: userId })
    }
    this.#followed.set(userId, { call, stops: [call.on('changed', show), call.on('media', admit)] })
    show()
  }

  leave(userId: string): void {
    const followed = this.#followed.get(userId)
    if (followed === undefined) return
    this.#followed.delete(userId)
    for (const stop of followed.stops) stop()
    this.#tell({ kind: 'gone', person: userId })
  }

  async close(): Promise<void> {
    this.#isClosing = true
    const browser = await this.#browser?.catch(() => undefined)
    await browser?.close()
  }

  #tell(request: MediaRequest): void {
    if (this.#browser === undefined && request.kind === 'call') this.#browser = this.#open()
    this.#browser?.then(browser => browser.tell(request)).catch(() => undefined)
  }

  #open(): Promise<MediaBrowser> {
    const { onTrouble } = this.#options
    const browser = MediaBrowser.open({
      onReport: report => this.#onReport(report),
      onGone: () => this.#isClosing || onTrouble('the browser is gone that people sent from'),
    })
    browser.catch(error => onTrouble(messageOf(error)))
    return browser
  }

  #onReport(report: MediaReport): void {
    const { onConnected, onTrouble } = this.#options
    const { person } = report
    switch (report.kind) {
      case 'key-wanted':
        return void this.#followed
          .get(person)
          ?.call.askForKey()
          .catch(error => onTrouble(sentenceOf(error), person))
      case 'error':
        return onTrouble(`${report.code}: ${report.message}`, person)
      case 'state':
        return report.state === 'connected' ? onConnected(person) : undefined
    }
  }
}

function seen({ callId, isVideo, state, roomId, media, participants, keys, sendingKey }: Call): SeenCall {
  const held = keys.map(({ epoch, key, fingerprint }) => ({ epoch, key: [...key], fingerprint }))
  const shown = { callId, isVideo, state, roomId, media, participants }
  return { ...shown, keys: held, sendingEpoch: sendingKey?.epoch }
}

const NO_CHROMIUM = '--media needs a Chromium: apt install chromium, or name one by CALLSIGN_CHROMIUM=PATH'
const NO_GATEWAY = '--media needs a server with Janus as its media gateway: apt install janus, and start it again'

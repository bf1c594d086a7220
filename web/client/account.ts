/** The user's own account: passkeys, an export of it, and its end. */

import { type Callsign, type GetMetaReply, hasCode, type LoginMethod } from '../../src/app/app.ts'
import { whenText } from '../../src/ui/when.ts'
import { browserName } from './names.ts'
import type { State, Store } from './state.ts'

export class Account {
  readonly #me: Callsign
  readonly #store: Store

  constructor(me: Callsign, store: Store) {
    this.#me = me
    this.#store = store
  }

  async load(): Promise<void> {
    const { items } = await this.#me.account.loginMethods()
    const passkeys = items.filter(({ kind }) => kind === 'passkey')
    this.#store.update({ passkeys, passkeysHere: await readPasskeysHere() })
  }

  async addPasskey(): Promise<void> {
    await this.#me.addPasskey({ label: browserName() })
    this.#store.say('good', 'Sign in by the passkey next time: no code, and no other device.')
    await this.load()
  }

  async removePasskey({ id }: LoginMethod): Promise<void> {
    await this.#me.account.removeLoginMethod({ id }).catch(error => {
      // The wish is fulfilled: another device was faster, or the answer to a first try was lost.
      if (!hasCode(error, 'LOGIN_METHOD_NOT_FOUND')) throw error
    })
    this.#store.say(
      'good',
      'The passkey signs in no more. Your browser may still offer it: delete it there, too.',
    )
    await this.load()
  }

  /** Saves all that the server has of the account as a file. */
  async save(): Promise<void> {
    const text = JSON.stringify(await this.#me.account.export(), undefined, 2)
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
    link.download = 'callsign-account.json'
    link.click()
    URL.revokeObjectURL(link.href)
  }

  /** Resolves with a sentence that says until when it can be kept. */
  async delete(): Promise<string> {
    const { erasesAt } = await this.#me.account.delete()
    return `Your account is erased ${whenText(new Date(erasesAt))}. Until then, signing in keeps it.`
  }
}

/** Whether the server takes passkeys, and the browser makes them for this address: for an IP address it makes none. */
export async function readPasskeysHere(): Promise<State['passkeysHere']> {
  const meta = await fetch('/app/api/meta').catch(() => undefined)
  const { features } = (await meta?.json().catch(() => undefined)) ?? ({ features: {} } as GetMetaReply)
  if (!features.passkeys || !('PublicKeyCredential' in globalThis)) return 'off'
  return /^[\d.]+$|:/.test(location.hostname) ? 'elsewhere' : 'on'
}

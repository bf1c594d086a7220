/** Session and keys in the keychain of iOS, and on Android encrypted by a key of the Keystore. */

import type { AppStorage } from '@callsign/sdk/app'
import {
  ACCESSIBLE,
  getGenericPassword,
  resetGenericPassword,
  setGenericPassword,
} from 'react-native-keychain'

export const keychainStorage: AppStorage = {
  async get(key) {
    const kept = await getGenericPassword({ service: serviceOf(key) })
    return kept === false ? undefined : JSON.parse(kept.password)
  },
  async put(key, value) {
    const service = serviceOf(key)
    if (value === null) return void (await resetGenericPassword({ service }))
    // A push wakes the app while the phone is locked. The keys stay on this phone, also when it is backed up.
    const accessible = ACCESSIBLE.AFTER_FIRST_UNLOCK_THIS_DEVICE_ONLY
    const kept = await setGenericPassword(key, JSON.stringify(value), { service, accessible })
    if (kept === false) throw new Error(`the keychain did not take ${key}`)
  },
}

function serviceOf(key: string): string {
  return `callsign.${key}`
}

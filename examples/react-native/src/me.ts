/** The user on this phone. */

import { Callsign } from '@callsign/sdk/app'
import { keychainStorage } from './keychain-storage.ts'
import { pins, server } from './pins.ts'

/** Of the phone: React Native has no `navigator.language`. */
const { locale: language } = Intl.DateTimeFormat().resolvedOptions()
export const me = new Callsign({ server, pins, storage: keychainStorage, language })

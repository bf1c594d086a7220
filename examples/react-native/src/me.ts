/** The user on this phone. */

import { Callsign } from 'callsign/app'
import { keychainStorage } from './keychain-storage.ts'
import { pins, server } from './pins.ts'

export const me = new Callsign({ server, pins, storage: keychainStorage })

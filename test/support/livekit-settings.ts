/** Settings of a LiveKit with secrets of this run. */

import { randomBytes } from 'node:crypto'
import type { LiveKitSettings } from '../../src/media/livekit-settings.ts'

export function keyed(apiUrl = 'http://127.0.0.1:1'): LiveKitSettings {
  return {
    url: 'wss://livekit.example.org',
    apiUrl,
    apiKey: `API${randomBytes(6).toString('hex')}`,
    apiSecret: randomBytes(32).toString('hex'),
    keySize: 256,
  }
}

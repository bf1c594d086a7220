/** A LiveKit server, or a cluster of them, as its operator has set it up. */

export interface LiveKitSettings {
  /** Where devices connect, `ws` or `wss`. */
  readonly url: string
  /** Its server API, such as `http://127.0.0.1:7880`. */
  readonly apiUrl: string
  readonly apiKey: string
  readonly apiSecret: string
  /** Bits of the keys that frames are encrypted with, the same for all devices: 128 only where the operator allows it. */
  readonly keySize: 128 | 256
}

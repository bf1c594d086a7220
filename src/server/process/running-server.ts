/** The server as the program sees it, once it runs. */

import type { Addresses } from '../../fronts/messages.ts'
import type { Logger } from '../../operations/log.ts'
import type { Config } from '../settings/config.ts'

/** The addresses of the server, and the keys that verify its log. */
export interface Ready extends Addresses {
  readonly origin: string
  readonly vkey: string
  readonly vrfPublicKey: string
}

export interface RunningServer {
  readonly ready: Ready
  /** Says that the server is ready. */
  announce(): void
  /** Takes certificates and media gateways of the settings as they are now, and nothing else; broken ones are logged and left. */
  renew(read: () => Config): Promise<void>
  /** Resolves when open requests are answered and everything is closed; a second call resolves with the first. */
  stop(reason: string): Promise<void>
}

export interface StartDeps {
  readonly logger: Logger
  /** Prints lines for a person beside the log: codes in development, ports that were taken. */
  readonly say: (text: string) => void
  readonly knownCheckpoint: string | undefined
  /** The same of the output log of the index. */
  readonly knownIndexCheckpoint?: string | undefined
  /** Called when the data directory is marked to begin anew, in development. */
  readonly onReset: () => void
}

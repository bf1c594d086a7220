/** Where a session, or a sign-in that waits, came from: the prefix of its network, sealed, as a member of its row. */

import { networkPrefix } from '../../domain/accounts/sign-in-place.ts'
import { Sealed, type SealingSecrets } from '../tables/sealed.ts'

interface WithNetwork {
  readonly network?: Uint8Array
}

export class SessionNetworks {
  readonly #sealed: Sealed

  constructor(secrets: SealingSecrets, randomBytes: (length: number) => Uint8Array) {
    this.#sealed = new Sealed(secrets, randomBytes, 'session-network')
  }

  /** Empty for a request's network that is unknown. */
  memberOf(network: string): WithNetwork {
    const prefix = networkPrefix(network)
    return prefix === undefined ? {} : { network: this.#sealed.seal(Buffer.from(prefix)) }
  }

  /** The prefix in a row; undefined for none, and for one that another secret has sealed. */
  prefixIn({ network }: WithNetwork): string | undefined {
    const prefix = network && this.#sealed.open(network)
    return prefix && Buffer.from(prefix).toString()
  }
}

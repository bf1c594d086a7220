/** Google and Sign in with Apple as tests sign in with them, on the loopback address. */

import { randomBytes } from 'node:crypto'
import type { ApplicationConfig } from '../../src/server/settings/application-config.ts'
import type { AppleStandIn } from './apple-stand-in.ts'
import type { Claims, OidcProvider } from './oidc-provider.ts'

/** Our app's ids at the provider, and at Apple. */
export const GOOGLE_APP = 'callsign.google'
export const APPLE_APP = 'org.example.callsign'

export class IdentityStandIns {
  #google: OidcProvider | undefined
  #apple: AppleStandIn | undefined

  async start(nowMs: () => number): Promise<void> {
    // Loaded for this: most set-ups know no providers.
    const [{ OidcProvider }, { AppleStandIn }] = await Promise.all([
      import('./oidc-provider.ts'),
      import('./apple-stand-in.ts'),
    ])
    const options = { nowMs, algorithm: 'ES256' } as const
    this.#google = await OidcProvider.start(options)
    this.#apple = await AppleStandIn.start(options)
  }

  get google(): OidcProvider {
    if (this.#google === undefined) throw new Error('Google was not started')
    return this.#google
  }

  get apple(): AppleStandIn {
    if (this.#apple === undefined) throw new Error('Apple was not started')
    return this.#apple
  }

  /** Settings that know both. */
  config(hasAppleKey: boolean): Pick<ApplicationConfig, 'providers' | 'apple'> {
    const { provider, teamId, keyId, privateKey } = this.apple
    const key = hasAppleKey ? { teamId, keyId, privateKey } : {}
    return {
      providers: [{ name: 'google', issuer: this.google.issuer, clientIds: [GOOGLE_APP] }],
      apple: { clientIds: [APPLE_APP], issuer: provider.issuer, ...key },
    }
  }

  /** An ID token of its own each time. */
  googleToken(sub: string, claims: Claims = {}): Promise<string> {
    return this.google.idToken(GOOGLE_APP, { sub, jti: newTokenId(), ...claims })
  }

  appleToken(subject: string, claims: Claims = {}): Promise<string> {
    return this.apple.identityToken({ subject, clientId: APPLE_APP }, { jti: newTokenId(), ...claims })
  }

  appleCode(subject: string): string {
    return this.apple.issueCode({ subject, clientId: APPLE_APP })
  }

  async stop(): Promise<void> {
    await Promise.all([this.#google?.stop(), this.#apple?.stop()])
  }
}

function newTokenId(): string {
  return randomBytes(8).toString('hex')
}

/** Apps of `@callsign/sdk/app` on a running server: sessions of people with a fixed code. */

import { type Platform, Server, type ServerOptions } from '../../src/app/session/server.ts'
import { Session } from '../../src/app/session/session.ts'
import { type AppStorage, memoryStorage } from '../../src/app/storage/storage.ts'
import { CODE, emailOf } from './call-people.ts'

export interface AppSession {
  readonly server: Server
  readonly session: Session
  readonly storage: AppStorage
}

/** The app starts, with what its storage has. */
export async function startApp(
  url: string,
  { storage = memoryStorage(), ...options }: Partial<ServerOptions> & { readonly storage?: AppStorage } = {},
): Promise<AppSession> {
  const server = new Server({ url, ...options })
  return { server, session: await Session.open(server, storage), storage }
}

export async function signIn({ session }: AppSession, at = 0) {
  const challenge = await session.login({ email: emailOf(at), displayName: `Person ${at}` })
  if (challenge.verified) throw new Error('a code was to be asked for')
  return session.verifyLogin({ challengeId: challenge.challengeId, otp: CODE })
}

/** The clock of this machine, moved by so much, and waits that are over at once. */
export function platformOf(overrides: Partial<Platform> & { readonly aheadMs?: number } = {}): Platform {
  const { aheadMs = 0, ...rest } = overrides
  return { nowMs: () => Date.now() + aheadMs, random: () => 0.5, wait: async () => {}, ...rest }
}

/** The code of the error that a promise rejects with, `'none'` where it does not reject. */
export async function rejectionOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'none'
  } catch (error) {
    return String((error as { code?: unknown }).code ?? error)
  }
}

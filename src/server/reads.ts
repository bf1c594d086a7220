/**
 * Reads, commands, public facts and pages of share links: every process that serves clients answers them, from the store or for
 * the writer.
 */

import type { Authentication } from '../api/accounts/authentication.ts'
import { landingRoutes } from '../api/contacts/landing.ts'
import type { ApiDeps } from '../api/deps.ts'
import type { Features } from '../api/documents/meta.ts'
import { COMMANDS, READS } from '../api/operations.ts'
import { commandRoutes, readRoutes } from '../api/table/operation-routes.ts'
import type { RequestRates } from '../api/table/request-rates.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import type { CurrentMedia } from '../media/current-media.ts'
import { LiveKitTokens } from '../media/livekit-tokens.ts'
import type { MediaSettings } from '../media/media-settings.ts'
import { RoomTokens } from '../media/room-tokens.ts'
import type { Admit } from '../schema/call.ts'
import type { HttpRoute } from '../transport/route.ts'
import type { ReadStores } from './application-stores.ts'
import type { ApplicationConfig } from './settings/application-config.ts'

/** The parts of a serving process that the application API is made of. */
export interface Serving {
  readonly config: ApplicationConfig
  readonly isDevelopment: boolean
  readonly stores: ReadStores
  readonly authentication: Authentication
  /** Undefined where no rate counts, in development. */
  readonly requestRates: RequestRates | undefined
  readonly nowMs: () => number
  /** The address that clients see; known once the server listens. */
  readonly publicUrl: () => string
  /** See `ApiDeps`. */
  readonly admit?: ApiDeps['admit']
  /** Shows the requester; absent but in development. */
  readonly onRequester?: (
    request: { readonly requestId: string },
    requester: { readonly userId: UserId; readonly deviceId?: DeviceId },
  ) => void
}

export interface Reads {
  /** The outside services that are configured, and the ways to sign in. */
  readonly features: Features
  readonly loginMethods: readonly string[]
  readonly routes: readonly HttpRoute[]
}

export function openReads(serving: Serving): Reads {
  const { config, isDevelopment, stores } = serving
  const routes = readRoutes(READS, { ...serving, ...stores, idsAs: config.idsAs })
  return {
    features: featuresOf(config),
    loginMethods: [
      ...(config.mail || isDevelopment ? ['email'] : []),
      ...(config.sms || isDevelopment ? ['phone'] : []),
      ...(config.apple ? ['apple'] : []),
      ...config.providers.map(({ name }) => name),
    ],
    routes: [...routes, ...landingRoutes({ ...config, isDevelopment })],
  }
}

/** The routes of commands; `askRoom` has the writer carry them out. */
export function openCommands(
  serving: Serving & Pick<ApiDeps, 'askRoom' | 'randomBytes'>,
): readonly HttpRoute[] {
  return commandRoutes(COMMANDS, { ...serving, ...serving.stores, idsAs: serving.config.idsAs })
}

/** Admits devices to the gateways' rooms, alike in every process: tokens follow from the settings as they are now. */
export function admitOf(media: Pick<CurrentMedia, 'settings'>): ApiDeps['admit'] {
  const { settings } = media
  if (settings === undefined) return undefined
  if (settings.kind === 'livekit') {
    const { admit, identityOf } = new LiveKitTokens(settings.livekit)
    return { kind: 'livekit', keySize: settings.livekit.keySize, admissionOf: admit, identityOf }
  }
  let read: MediaSettings | undefined
  let admissionOf: Admit['admissionOf']
  return {
    kind: 'janus',
    admissionOf(entry) {
      if (read !== media.settings) {
        read = media.settings
        admissionOf = admissionBy(read)
      }
      return admissionOf(entry)
    },
  }
}

function admissionBy(media: MediaSettings | undefined): Admit['admissionOf'] {
  if (media?.kind !== 'janus') return () => undefined
  const tokensOf = new Map(media.gateways.map(gateway => [gateway.name, new RoomTokens(gateway)]))
  return entry => tokensOf.get(entry.gateway ?? '')?.admit(entry)
}

function featuresOf({
  contactsBy,
  mail,
  sms,
  apns,
  fcm,
  turn,
  media,
  passkeys,
}: ApplicationConfig): Features {
  return {
    mail: mail !== undefined,
    sms: sms !== undefined,
    apns: apns !== undefined,
    fcm: fcm !== undefined,
    turn: turn !== undefined,
    passkeys: passkeys !== undefined,
    contacts: contactsBy,
    media: media?.kind ?? 'client',
  }
}

/**
 * All that the server holds of one person, as one JSON document made part by part (operators.md, section 6; GDPR, articles 15
 * and 20). Each portion is read from a state of its own, and only when the reader has taken the one before: a document of any
 * length costs the memory of some portions. docs/protocol/export.md explains the members, and lists the exceptions.
 */

import { setImmediate } from 'node:timers/promises'
import type { Static } from 'typebox'
import { PUSH_TOKEN_NAMES, type PushTokenName, tokenOf } from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import type { UserExport } from '../../schema/export.ts'
import { formatJson, type IdForm } from '../../schema/json.ts'
import { optionalTimeText, timeText } from '../../schema/time.ts'
import type { View } from '../../store/engine/store.ts'
import type { NamedReport } from '../../store/operators/reports.ts'
import { historyPage } from '../calls/call-history.ts'
import { blockPage, contactPage } from '../contacts/contacts.ts'
import { requestPage } from '../contacts/friend-requests.ts'
import { shareTokenPage } from '../contacts/share-tokens.ts'
import type { ApiDeps } from '../deps.ts'
import { deviceViews } from '../devices/devices.ts'
import { type Page, pageOf, rangeOf } from '../table/page.ts'
import { sessionViews } from './user-sessions.ts'
import { wholeUserView } from './user-view.ts'
import { waitingSignInViews } from './waiting-sign-ins.ts'

export type PersonalDataDeps = Pick<
  ApiDeps,
  | 'accounts'
  | 'badgeOf'
  | 'callIndex'
  | 'calls'
  | 'circles'
  | 'contacts'
  | 'database'
  | 'devices'
  | 'history'
  | 'lifetimes'
  | 'reports'
  | 'sessionNetworks'
  | 'sessions'
  | 'shareTokens'
>

/** Whose data, and for whom. */
export interface DataRequest {
  readonly userId: UserId
  /** The session that asks, and its device, where the person themself asks. */
  readonly sessionId?: Uint8Array
  readonly deviceId?: DeviceId
  readonly nowMs: number
  readonly idsAs: IdForm
  /** Called before each portion is read. Throws where the asker may have no more. */
  readonly assertAllowed: (view: View) => void
}

type PageQuery = Parameters<typeof contactPage>[3]
type Whole = (view: View, deps: PersonalDataDeps, request: DataRequest) => object
type Paged = (view: View, deps: PersonalDataDeps, request: DataRequest, query: PageQuery) => Page

/** The document's parts, tens of kilobytes each. The first rejects with `USER_NOT_FOUND` where there is no such user. */
export async function* personalData(
  deps: PersonalDataDeps,
  request: DataRequest,
): AsyncGenerator<Uint8Array> {
  let text = ''
  for await (const portion of portionsOf(deps, request)) {
    text += portion
    if (text.length < PART_CHARS_MIN) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(text)
}

async function* portionsOf(deps: PersonalDataDeps, request: DataRequest): AsyncGenerator<string> {
  const { nowMs, idsAs } = request
  const read = async <Value>(make: (view: View) => Value): Promise<Value> => {
    // Other requests have their turns, also where the reader is fast.
    await setImmediate()
    return deps.database.view(view => {
      request.assertAllowed(view)
      return make(view)
    })
  }
  yield `{"exportedAt":${formatJson(timeText(nowMs), idsAs)}`
  for (const [name, make] of Object.entries(WHOLE)) {
    const value = await read(view => make(view, deps, request))
    yield `,"${name}":${formatJson(value, idsAs)}`
  }
  for (const [name, make] of Object.entries(PAGED)) {
    yield `,"${name}":[`
    let page: Page | undefined
    do {
      const isFirst = page === undefined
      const query = { limit: PAGE_ITEMS, ...(page?.nextCursor !== undefined && { cursor: page.nextCursor }) }
      page = await read(view => make(view, deps, request, query))
      if (page.items.length > 0) yield (isFirst ? '' : ',') + formatJson(page.items, idsAs).slice(1, -1)
    } while (page.nextCursor !== undefined)
    yield ']'
  }
  yield '}'
}

/** Members that have few items at most. */
const WHOLE = {
  user: (view, deps, { userId, deviceId }) => wholeUserView(view, deps, userId, deviceId),
  account: accountOf,
  identities: (view, { accounts }, { userId }) =>
    accounts.methodsOf(view, userId).flatMap(method =>
      method.kind === 'social'
        ? [
            {
              methodId: method.id,
              provider: method.provider,
              issuer: method.issuer,
              subject: method.subject,
            },
          ]
        : [],
    ),
  passkeys: (view, { accounts }, { userId }) =>
    accounts.methodsOf(view, userId).flatMap(method =>
      method.kind === 'passkey'
        ? [
            {
              methodId: method.id,
              credentialId: method.credentialId,
              publicKey: Buffer.from(method.publicKey).toString('base64'),
              signCount: method.counter,
              transports: method.transports,
              aaguid: method.aaguid,
            },
          ]
        : [],
    ),
  sessions: (view, deps, { userId, sessionId, nowMs }) => sessionViews(view, deps, userId, sessionId, nowMs),
  devices: (view, { devices }, { userId, deviceId }) => deviceViews(view, devices, userId, deviceId),
  deviceDetails: deviceDetailsOf,
  waitingSignIns: (view, { sessionNetworks }, { userId, nowMs }) =>
    waitingSignInViews(view, sessionNetworks, userId, nowMs),
  circles: (view, { circles }, { userId }) => circles.namesOf(view, userId),
} satisfies Partial<Record<Member, Whole>>

/** Members that may have thousands. */
const PAGED = {
  removedDevices: removedDevicePage,
  contacts: (view, deps, { userId }, query) => contactPage(view, deps, userId, query),
  incomingRequests: (view, deps, { userId, nowMs }, query) =>
    requestPage(view, deps, userId, { ...query, direction: 'incoming' }, nowMs),
  outgoingRequests: (view, deps, { userId, nowMs }, query) =>
    requestPage(view, deps, userId, { ...query, direction: 'outgoing' }, nowMs),
  blocks: (view, deps, { userId }, query) => blockPage(view, deps, userId, query),
  shareTokens: (view, deps, { userId, nowMs }, query) => shareTokenPage(view, deps, userId, query, nowMs),
  calls: (view, deps, { userId, nowMs }, query) =>
    historyPage(view, deps, { userId, live: deps.callIndex.callsOf(userId), query, nowMs }),
  reports: sentReportPage,
} satisfies Record<Exclude<Member, keyof typeof WHOLE>, Paged>

type Member = Exclude<keyof Static<typeof UserExport>, 'exportedAt'>

/** Facts that no screen of the app shows. Notes of moderators stay with them. */
function accountOf(view: View, { accounts }: PersonalDataDeps, { userId }: DataRequest): object {
  const user = accounts.read(view, userId)
  if (user === undefined) throw new SignalError('USER_NOT_FOUND', 'there is no such user')
  const { acceptLanguage, erasesAtMs, externalId, isMadeByServer = false, contactData, suspension } = user
  return {
    language: acceptLanguage,
    erasesAt: optionalTimeText(erasesAtMs),
    externalId,
    madeByServer: isMadeByServer,
    contactData,
    suspension: suspension && {
      reason: suspension.reason,
      suspendedAt: timeText(suspension.atMs),
      until: optionalTimeText(suspension.untilMs),
    },
  }
}

/** A push token stays out, since it lets its holder push to the device: `push` says that there is one. */
function deviceDetailsOf(view: View, { devices }: PersonalDataDeps, { userId }: DataRequest): object {
  return devices.activeDevicesOf(view, userId).map(({ deviceId, info, publicKey, signingKey, push }) => ({
    deviceId,
    osVersion: info.osVersion,
    locale: info.locale,
    timeZone: info.timeZone,
    publicKey,
    signingKey,
    push: PUSH_TOKEN_NAMES.filter(name => tokenOf(push, name) !== undefined).map(name => ({
      service: PUSH_SERVICES[name],
      registeredAt: optionalTimeText(push?.registeredAtMs[name]),
    })),
  }))
}

function removedDevicePage(
  view: View,
  { devices }: PersonalDataDeps,
  { userId }: DataRequest,
  { limit = PAGE_ITEMS, cursor }: PageQuery,
): Page {
  const after = cursor === undefined ? undefined : (BigInt(cursor) as DeviceId)
  const found = devices.removedDevicesOf(view, userId, limit, after)
  const items = found.map(({ deviceId, info, publicKey, createdAtMs, removedAtMs }) => ({
    deviceId,
    platform: info.platform,
    publicKey,
    createdAt: timeText(createdAtMs),
    removedAt: optionalTimeText(removedAtMs),
  }))
  return { items, nextCursor: found.length < limit ? undefined : String(found.at(-1)!.deviceId) }
}

/** Reports by the person; what became of them is the moderators' business. */
function sentReportPage(
  view: View,
  { reports }: PersonalDataDeps,
  { userId }: DataRequest,
  query: PageQuery,
): Page {
  const found = reports.by(view, userId, rangeOf(query))
  const entryOf = ({ createdAtMs, reportId }: NamedReport) => ({ atMs: createdAtMs, id: reportId })
  return pageOf(query, found, entryOf, ({ reportId, reportedId, callId, reason, text, createdAtMs }) => ({
    reportId,
    userId: reportedId,
    callId,
    reason,
    text,
    createdAt: timeText(createdAtMs),
  }))
}

const PUSH_SERVICES: Readonly<Record<PushTokenName, string>> = {
  apnsToken: 'apns',
  apnsVoipToken: 'apns-voip',
  fcmToken: 'fcm',
  webPush: 'web-push',
}
const PAGE_ITEMS = 100
/** Shorter portions go together. */
const PART_CHARS_MIN = 16_384

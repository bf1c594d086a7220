/** Wire shape of a user's export: the items of the lists, as the lists show them, and what no list shows. docs/protocol/export.md explains it. */

import Type from 'typebox'
import { SessionList, UserView } from './account.ts'
import { HistoryPage } from './call.ts'
import { BlockPage, ContactPage, RequestPage, ShareTokenPage } from './contact.ts'
import { DeviceList } from './device.ts'
import { oneOf } from './one-of.ts'
import { ReportRequest } from './report.ts'
import { WaitingSignInList } from './sign-in.ts'
import { Time } from './time.ts'
import { Uint64Text } from './uint64.ts'

const ExportedAccount = Type.Object({
  language: Type.String({ description: 'Of letters to the user, as the app last asked for it' }),
  erasesAt: Type.Optional({
    ...Time,
    description: 'When the account is erased, where its end was asked for',
  }),
  externalId: Type.Optional(Type.String({ description: 'What the operator’s backend calls the user' })),
  madeByServer: Type.Boolean({
    description:
      'Whether the operator’s backend made the account, and the user has confirmed no login method since',
  }),
  contactData: Type.Optional(
    Type.Object(
      { email: Type.Optional(Type.String()), phone: Type.Optional(Type.String()) },
      { description: 'What the operator’s backend says of the user, unproven' },
    ),
  ),
  suspension: Type.Optional(
    Type.Object({ reason: Type.String(), suspendedAt: Time, until: Type.Optional(Time) }),
  ),
})

const ExportedIdentity = Type.Object({
  methodId: { ...Uint64Text, description: 'As in `user.loginMethods`' },
  provider: Type.String(),
  issuer: Type.String(),
  subject: Type.String({ description: 'The user’s name at the provider' }),
})

const ExportedPasskey = Type.Object({
  methodId: { ...Uint64Text, description: 'As in `user.loginMethods`' },
  credentialId: Type.String({ description: 'Base64url' }),
  publicKey: Type.String({ description: 'A COSE_Key, base64' }),
  signCount: Type.Integer(),
  transports: Type.Array(Type.String()),
  aaguid: Type.String({ description: 'The authenticator’s model' }),
})

const ExportedDevice = Type.Object({
  deviceId: { ...Uint64Text, description: 'As in `devices`' },
  osVersion: Type.Optional(Type.String()),
  locale: Type.Optional(Type.String()),
  timeZone: Type.Optional(Type.String()),
  publicKey: Type.String({ description: 'As it is in the log' }),
  signingKey: Type.Optional(Type.String({ description: 'That the device signs device lists with' })),
  push: Type.Array(
    Type.Object({
      service: oneOf(['apns', 'apns-voip', 'fcm', 'web-push']),
      registeredAt: Type.Optional({ ...Time, description: 'When the app last sent the token' }),
    }),
    { description: 'The push services that the server has a token for' },
  ),
})

const RemovedDevice = Type.Object({
  deviceId: Uint64Text,
  platform: Type.String(),
  publicKey: Type.String(),
  createdAt: Time,
  removedAt: Type.Optional(Time),
})

const ExportedReport = Type.Object({
  reportId: Uint64Text,
  userId: { ...Uint64Text, description: 'About whom' },
  callId: Type.Optional(Uint64Text),
  reason: ReportRequest.properties.reason,
  text: Type.Optional(Type.String()),
  createdAt: Time,
})

export const UserExport = Type.Object({
  exportedAt: Time,
  user: UserView,
  account: ExportedAccount,
  identities: Type.Array(ExportedIdentity),
  passkeys: Type.Array(ExportedPasskey),
  sessions: SessionList.properties.items,
  devices: DeviceList.properties.items,
  deviceDetails: Type.Array(ExportedDevice),
  waitingSignIns: WaitingSignInList.properties.items,
  circles: Type.Array(Type.String(), { description: 'By what the operator’s backend calls them' }),
  removedDevices: Type.Array(RemovedDevice),
  contacts: ContactPage.properties.items,
  incomingRequests: RequestPage.properties.items,
  outgoingRequests: RequestPage.properties.items,
  blocks: BlockPage.properties.items,
  shareTokens: ShareTokenPage.properties.items,
  calls: HistoryPage.properties.items,
  reports: Type.Array(ExportedReport),
})

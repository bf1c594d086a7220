/** Wire shape of a user's export: the items of the lists, as the lists show them. */

import Type from 'typebox'
import { SessionList, UserView } from './account.ts'
import { HistoryPage } from './call.ts'
import { BlockPage, ContactPage, RequestPage, ShareTokenPage } from './contact.ts'
import { DeviceList } from './device.ts'
import { Time } from './time.ts'

export const UserExport = Type.Object({
  exportedAt: Time,
  user: UserView,
  sessions: SessionList.properties.items,
  devices: DeviceList.properties.items,
  contacts: ContactPage.properties.items,
  incomingRequests: RequestPage.properties.items,
  outgoingRequests: RequestPage.properties.items,
  blocks: BlockPage.properties.items,
  shareTokens: ShareTokenPage.properties.items,
  calls: HistoryPage.properties.items,
})

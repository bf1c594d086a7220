/** Shows calls while no page is open. */

import { handleCallPushes } from '@callsign/sdk/app/service-worker'

handleCallPushes()

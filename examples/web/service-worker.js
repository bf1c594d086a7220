/** Shows calls while no page is open. */

import { handleCallPushes } from 'callsign/app/service-worker'

handleCallPushes()

/** The service worker of the development client: shows calls while its tabs are closed. */

import { handleCallPushes } from '../../src/app/push/service-worker.ts'

handleCallPushes({ url: '/dev/client', icon: '/dev/pages/icon.svg' })

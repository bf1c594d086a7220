/** What an app subscribes to once it has connected. */

import type { Subscribing } from './stomp-socket.ts'

export const QUEUES: readonly Subscribing[] = ['calls', 'contacts', 'account'].map((queue, at) => ({
  id: `sub-${at}`,
  destination: `/user/queue/${queue}`,
  ack: 'client-individual',
}))

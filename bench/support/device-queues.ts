/** The queues that an app subscribes to once it has connected. */

import type { Subscribing } from './stomp-socket.ts'

/** The three queues of one's own device; of a server that knows no devices, three topics for it alone. */
export type SubscribingTo = 'queues' | 'topics'

export function subscribingsOf(to: SubscribingTo, device: number): readonly Subscribing[] {
  if (to === 'queues') return QUEUES
  return QUEUES.map((queue, at) => ({ ...queue, destination: `/topic/${NAMES[at]}.${device}` }))
}

const NAMES = ['calls', 'contacts', 'account']
const QUEUES: readonly Subscribing[] = NAMES.map((name, at) => ({
  id: `sub-${at}`,
  destination: `/user/queue/${name}`,
  ack: 'client-individual',
}))

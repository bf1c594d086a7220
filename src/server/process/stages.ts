/** The stages of a stop, in one order for every role of a process. Each part names its own steps by stage. */

/**
 * Each stage needs parts that end in later ones: an answer needs the actors, these need the log, and that needs the
 * store.
 */
export const STOP_STAGES = [
  /** No client connects any more. */
  'listening',
  /** Fronts end. Their clients connect elsewhere. */
  'fronts',
  /** The server tells clients to reconnect. */
  'clients',
  /** Pending registrations are answered. */
  'registrations',
  /** Requests over HTTP are answered. */
  'requests',
  /** Fronts of other nodes stop reading on this writer's word. */
  'read-leases',
  /** Actors empty their mailboxes. */
  'actors',
  /** Acknowledgements of clients are written. */
  'inboxes',
  /** Last frames go out, and connections end. */
  'connections',
  /** Sockets close. */
  'sockets',
  /** Mail, pushes, gateways and VRF threads end. */
  'services',
  /** Another node may write. */
  'lease',
  /** The connections to PostgreSQL close. */
  'ledger',
  'store',
] as const

export type StopStage = (typeof STOP_STAGES)[number]

/** The role of a process whose parts have all ended. */
export interface Stopped {
  readonly kind: 'stopped'
}

/** How one part of a process ends. Parts that end in the same stage don't need one another. */
export type Stops = { readonly [Stage in StopStage]?: () => unknown }

/**
 * Ends the parts stage by stage. Calls `onStage` as each begins, then `parts`: a changing role may have new ones.
 * Rejects with the first failure, and then ends no further part.
 */
export async function stopInStages(
  parts: () => readonly Stops[],
  onStage: (stage: StopStage) => void,
): Promise<void> {
  for (const stage of STOP_STAGES) {
    onStage(stage)
    await Promise.all(parts().map(part => part[stage]?.()))
  }
}

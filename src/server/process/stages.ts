/** The stages of a stop, in one order for every role of a process. A part says what ends in which stage. */

/** Each stage needs what ends in later ones: an answer needs the actors, these need the log, and that needs the store. */
export const STOP_STAGES = [
  /** No client connects any more. */
  'listening',
  /** Fronts end. Their clients connect elsewhere. */
  'fronts',
  /** The server tells clients to reconnect. */
  'clients',
  /** Keys that were sent for the log are answered. */
  'registrations',
  /** Requests over HTTP are answered. */
  'requests',
  /** Fronts of other nodes stop reading on this writer's word. */
  'read-leases',
  /** Actors handle what their mailboxes have. */
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
  /** PostgreSQL hears no more of this node. */
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
 * Ends the parts stage by stage. Calls `onStage` as each begins, then `parts`: a role that was changing has new ones by then.
 * Rejects with the first failure, and ends nothing more.
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

/** Figures that other parts keep, read at each scrape. */

import type { IndexFigures } from '../keyserver/index/index-figures.ts'
import type { VrfPool } from '../keyserver/vrf/vrf-pool.ts'
import type { WitnessFigures } from '../keyserver/witness-rounds.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { Metrics } from './metrics.ts'

export function observe(
  metrics: Metrics,
  system: Pick<ActorSystem, 'figures'>,
  vrf: Pick<VrfPool, 'figures'>,
): void {
  const vrfGauges = [
    ['jobsQueued', 'callsign_vrf_jobs_queued', 'VRF jobs waiting for a thread'],
    ['threadsReady', 'callsign_vrf_threads_ready', 'VRF threads that take jobs'],
    ['cacheEntries', 'callsign_vrf_cache_entries', 'VRF results kept in memory'],
  ] as const
  for (const [figure, name, help] of vrfGauges) metrics.gauge(name, help, () => vrf.figures[figure])
  const vrfCounters = [
    ['threadsReplaced', 'callsign_vrf_threads_replaced_total', 'VRF threads that ended and were replaced'],
    ['hashesComputed', 'callsign_vrf_hashes_computed_total', 'VRF hashes computed for registrations'],
    ['proofsComputed', 'callsign_vrf_proofs_computed_total', 'VRF proofs computed for first lookups'],
    ['cacheHits', 'callsign_vrf_cache_hits_total', 'Lookups answered from the cache'],
    ['cacheMisses', 'callsign_vrf_cache_misses_total', 'Lookups that needed a thread'],
  ] as const
  for (const [figure, name, help] of vrfCounters) metrics.counter(name, help, () => vrf.figures[figure])
  metrics.gauge(
    'callsign_actor_run_queue',
    'Actors waiting for a turn',
    () => system.figures().runQueueLength,
  )
  observeKinds(metrics, system)
  metrics.labelledCounter(
    'callsign_actor_dead_letters_total',
    'Messages that reached nobody',
    'reason',
    () => new Map(Object.entries(system.figures().deadLetters)),
  )
}

/** Figures by kind of actor. */
function observeKinds(metrics: Metrics, system: Pick<ActorSystem, 'figures'>): void {
  const byKind = (read: (figures: ReturnType<typeof system.figures>['kinds'][string]) => number) => () => {
    const kinds = Object.entries(system.figures().kinds)
    return new Map(kinds.map(([kind, figures]) => [kind, read(figures)]))
  }
  const gauges = [
    ['live', 'callsign_actors_live', 'Actors in memory'],
    ['mailboxDepthMax', 'callsign_actor_mailbox_depth_max', 'The deepest any mailbox of the kind has been'],
  ] as const
  for (const [figure, name, help] of gauges) {
    metrics.labelledGauge(
      name,
      help,
      'kind',
      byKind(figures => figures[figure]),
    )
  }
  const counters = [
    ['turns', 'callsign_actor_turns_total', 'Messages, timers and commits handled'],
    ['restarts', 'callsign_actor_restarts_total', 'Actors dropped because a handler failed'],
    ['commitFailures', 'callsign_actor_commit_failures_total', 'Actors dropped because a write failed'],
  ] as const
  for (const [figure, name, help] of counters) {
    metrics.labelledCounter(
      name,
      help,
      'kind',
      byKind(figures => figures[figure]),
    )
  }
  metrics.labelledCounter(
    'callsign_actor_handling_seconds_total',
    'Time spent handling on the main thread',
    'kind',
    byKind(({ handlingMs }) => handlingMs / 1000),
  )
}

/** Counts operations on the store. */
export function observeStore(
  metrics: Metrics,
  figures: () => {
    readonly commits: number
    readonly puts: number
    readonly removes: number
    readonly reads: number
  },
): void {
  metrics.counter(
    'callsign_store_commits_total',
    'Transactions of the store, each with all changes that waited',
    () => figures().commits,
  )
  metrics.labelledCounter(
    'callsign_store_accesses_total',
    'Rows that were put, removed or read; a range counts as one read',
    'kind',
    () => {
      const { puts, removes, reads } = figures()
      return new Map([
        ['put', puts],
        ['remove', removes],
        ['read', reads],
      ])
    },
  )
}

/** How the witnesses of the policy answer. */
export function observeWitnesses(metrics: Metrics, figures: () => WitnessFigures | undefined): void {
  observeCosigning(metrics, 'callsign_', figures, {
    lost: 'Whether registrations are refused because the quorum of witnesses does not answer: 1 or 0',
    conflict: 'Whether a witness has cosigned another tree of this log: 1 or 0',
  })
}

function observeCosigning(
  metrics: Metrics,
  prefix: string,
  figures: () => WitnessFigures | undefined,
  { lost, conflict }: { readonly lost: string; readonly conflict: string },
): void {
  metrics.gauge(
    `${prefix}witness_quorum_age_seconds`,
    'Time since the quorum of witnesses last cosigned, by their clocks; +Inf before the first time, 0 without a policy',
    () => figures()?.quorumAgeSeconds ?? 0,
  )
  metrics.gauge(`${prefix}witness_quorum_missing`, lost, () => Number(figures()?.isQuorumLost ?? false))
  metrics.gauge(`${prefix}witness_conflict`, conflict, () => Number(figures()?.hasConflict ?? false))
  metrics.gauge(
    `${prefix}witnesses_failing`,
    'Witnesses that did not cosign when they were last asked',
    () => figures()?.failing ?? 0,
  )
  metrics.labelledCounter(
    `${prefix}witness_failures_total`,
    'Questions that a witness did not answer with its cosignature',
    'witness',
    () => figures()?.failures ?? new Map(),
  )
}

/** How the index of the log does. Without one, and on a node that is not the writer, all figures are 0. */
export function observeIndex(metrics: Metrics, figures: () => IndexFigures | undefined): void {
  const gauges = [
    ['entries', 'callsign_index_entries', 'Entries of the log that the shown leaf of the index has'],
    ['leaves', 'callsign_index_leaves', 'Leaves of the output log of the index'],
    ['lagEntries', 'callsign_index_lag_entries', 'Entries of the log that are newer than the shown leaf'],
    [
      'leafAgeSeconds',
      'callsign_index_leaf_age_seconds',
      'Time since the shown leaf; before the first one since the start',
    ],
  ] as const
  for (const [figure, name, help] of gauges) metrics.gauge(name, help, () => figures()?.[figure] ?? 0)
  metrics.gauge(
    'callsign_index_held',
    'Whether something is wrong with the index, so that it grows no more and answers nothing: 1 or 0',
    () => Number(figures()?.held !== undefined),
  )
  metrics.gauge('callsign_index_building', 'Whether the index is built for the first time: 1 or 0', () =>
    Number(figures()?.building !== undefined),
  )
  observeCosigning(metrics, 'callsign_index_', () => figures()?.witnesses, {
    lost: 'Whether the index stands still because the quorum of witnesses does not answer: 1 or 0',
    conflict: 'Whether a witness has cosigned another tree of the output log: 1 or 0',
  })
}

/** Counts the processes that serve the HTTP port beside this one. */
export function observeFronts(
  metrics: Metrics,
  figures: () => { readonly ready: number; readonly restarts: number },
): void {
  metrics.gauge('callsign_fronts', 'Fronts that serve the HTTP port', () => figures().ready)
  metrics.counter(
    'callsign_front_restarts_total',
    'Fronts that ended by themselves and were started again',
    () => figures().restarts,
  )
}

/** Which fronts the writer waits for. */
export function observeFrontLinks(
  metrics: Metrics,
  figures: () => readonly { readonly name: string; readonly lagMs: number; readonly waitedMs: number }[],
): void {
  metrics.labelledGauge(
    'callsign_front_lag_seconds',
    'How long a front takes to show a change; above 0.15 one of another node gets no read lease, and is not waited for',
    'front',
    () => new Map(figures().map(({ name, lagMs }) => [name, lagMs / 1000])),
  )
  metrics.labelledCounter(
    'callsign_front_waited_seconds_total',
    'Time that changes have waited for a front, summed over them',
    'front',
    () => new Map(figures().map(({ name, waitedMs }) => [name, waitedMs / 1000])),
  )
}

/** Counts the sockets that carry STOMP. */
export function observeConnections(
  metrics: Metrics,
  connections: { readonly size: number; readonly bufferedBytes: number; readonly shedCount: number },
  newcomers: { readonly waiting: number },
): void {
  metrics.gauge(
    'callsign_newcomers_waiting',
    'New connections and CONNECTs that wait for a turn',
    () => newcomers.waiting,
  )
  metrics.gauge('callsign_connections', 'Open WebSockets and STOMP connections', () => connections.size)
  metrics.gauge(
    'callsign_connection_buffered_bytes',
    'Bytes sent to connections that the kernel has not taken',
    () => connections.bufferedBytes,
  )
  metrics.counter(
    'callsign_connections_shed_total',
    'Connections closed because all together had too much unsent',
    () => connections.shedCount,
  )
}

/** The figures of a node of several. */
export function observeNode(
  metrics: Metrics,
  figures: () => {
    readonly isWriter: boolean
    readonly change: number
    readonly silentMs: number
    readonly heldBack: number
  },
): void {
  metrics.gauge('callsign_node_writer', 'Whether the node is the writer: 1 or 0', () =>
    Number(figures().isWriter),
  )
  metrics.gauge(
    'callsign_node_change',
    'Number of the last change that the node has; the difference to that of the writer is its lag',
    () => figures().change,
  )
  metrics.gauge(
    'callsign_node_record_silent_seconds',
    'Time since the record last answered the node; 0 for the writer',
    () => figures().silentMs / 1000,
  )
  metrics.gauge(
    'callsign_node_held_changes',
    'Changes that the writer keeps in the record for a node that is being filled or catches up; 0 for other nodes',
    () => figures().heldBack,
  )
}

/** How well the nodes' PostgreSQL keeps changes. An unknown figure is no number. */
export function observeDatabase(
  metrics: Metrics,
  figures: () => {
    readonly hasFsync?: boolean
    readonly hasFullPageWrites?: boolean
    readonly waitsForStandby?: boolean
    readonly standbys?: number | undefined
    readonly isReadOnly?: boolean
  },
): void {
  const gauges = [
    ['hasFsync', 'callsign_database_fsync', 'Whether a commit of PostgreSQL waits for its disk: 1 or 0'],
    [
      'hasFullPageWrites',
      'callsign_database_full_page_writes',
      'Whether a crash of PostgreSQL leaves no torn page: 1 or 0',
    ],
    [
      'waitsForStandby',
      'callsign_database_standby_awaited',
      'Whether a commit of PostgreSQL waits for a synchronous standby: 1 or 0',
    ],
    [
      'standbys',
      'callsign_database_synchronous_standbys',
      'Synchronous standbys of PostgreSQL that are connected',
    ],
    [
      'isReadOnly',
      'callsign_database_read_only',
      'Whether PostgreSQL takes no changes (default_transaction_read_only): 1 or 0',
    ],
  ] as const
  for (const [figure, name, help] of gauges)
    metrics.gauge(name, help, () => Number(figures()[figure] ?? Number.NaN))
}

/** A media gateway as its operator watches it. */
export interface GatewayFigures {
  readonly name: string
  readonly isUp: boolean
  readonly isDraining: boolean
  readonly rooms: number
  readonly calls: number
}

export function observeMedia(metrics: Metrics, read: () => readonly GatewayFigures[]): void {
  const gauge = (name: string, help: string, figureOf: (gateway: GatewayFigures) => number) =>
    metrics.labelledGauge(
      name,
      help,
      'gateway',
      () => new Map(read().map(gateway => [gateway.name, figureOf(gateway)])),
    )
  gauge(
    'callsign_media_gateway_up',
    'Whether the media gateway answered last, and takes its secrets: 1 or 0',
    ({ isUp }) => Number(isUp),
  )
  gauge(
    'callsign_media_gateway_draining',
    'Whether the media gateway keeps its calls and gets no others: 1 or 0',
    ({ isDraining }) => Number(isDraining),
  )
  gauge('callsign_media_rooms', 'Rooms that the media gateway had at the last sweep', ({ rooms }) => rooms)
  gauge('callsign_media_calls', 'Live calls that have their room at the media gateway', ({ calls }) => calls)
}

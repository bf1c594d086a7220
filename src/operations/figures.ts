/** Figures that other parts keep, as gauges that are read when somebody asks. */

import type { VrfPool } from '../log/vrf-pool.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { Metrics } from './metrics.ts'

export function observe(
  metrics: Metrics,
  system: Pick<ActorSystem, 'figures'>,
  vrf: Pick<VrfPool, 'figures'>,
): void {
  const vrfFigures = [
    ['jobsQueued', 'callsign_vrf_jobs_queued', 'VRF jobs waiting for a thread'],
    ['threadsReady', 'callsign_vrf_threads_ready', 'VRF threads that take jobs'],
    ['threadsReplaced', 'callsign_vrf_threads_replaced', 'VRF threads that ended and were replaced'],
    ['hashesComputed', 'callsign_vrf_hashes_computed', 'VRF hashes computed for registrations'],
    ['proofsComputed', 'callsign_vrf_proofs_computed', 'VRF proofs computed for first lookups'],
    ['cacheEntries', 'callsign_vrf_cache_entries', 'VRF results kept in memory'],
    ['cacheHits', 'callsign_vrf_cache_hits', 'Lookups answered from the cache'],
    ['cacheMisses', 'callsign_vrf_cache_misses', 'Lookups that needed a thread'],
  ] as const
  for (const [figure, name, help] of vrfFigures) metrics.gauge(name, help, () => vrf.figures[figure])
  metrics.gauge(
    'callsign_actor_run_queue',
    'Actors waiting for a turn',
    () => system.figures().runQueueLength,
  )
  const kindFigures = [
    ['live', 'callsign_actors_live', 'Actors in memory'],
    ['mailboxDepthMax', 'callsign_actor_mailbox_depth_max', 'The deepest any mailbox of the kind has been'],
    ['turns', 'callsign_actor_turns', 'Messages, timers and commits handled since the start'],
    ['handlingMs', 'callsign_actor_handling_ms', 'Milliseconds spent handling since the start'],
    ['restarts', 'callsign_actor_restarts', 'Actors dropped because a handler failed, since the start'],
    [
      'commitFailures',
      'callsign_actor_commit_failures',
      'Actors dropped because a write failed, since the start',
    ],
  ] as const
  for (const [figure, name, help] of kindFigures) {
    metrics.labelledGauge(name, help, 'kind', () => {
      const kinds = Object.entries(system.figures().kinds)
      return new Map(kinds.map(([kind, figures]) => [kind, figures[figure]]))
    })
  }
  metrics.labelledGauge(
    'callsign_actor_dead_letters',
    'Messages that reached nobody, since the start',
    'reason',
    () => new Map(Object.entries(system.figures().deadLetters)),
  )
}

/** Of the sockets that STOMP is spoken on. */
export function observeConnections(
  metrics: Metrics,
  connections: { readonly size: number; readonly bufferedBytes: number; readonly shedCount: number },
): void {
  metrics.gauge('callsign_connections', 'Open WebSockets and STOMP connections', () => connections.size)
  metrics.gauge(
    'callsign_connection_buffered_bytes',
    'Bytes sent to connections that the kernel has not taken',
    () => connections.bufferedBytes,
  )
  metrics.gauge(
    'callsign_connections_shed',
    'Connections closed since the start because all together had too much unsent',
    () => connections.shedCount,
  )
}

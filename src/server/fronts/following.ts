/** The store and the log as a front answers from them: the changes that it applied, and when it may answer from these. */

import type { Link } from '../../fronts/link/link.ts'
import { type MessageToFront, type MessageToWriter, NODE_LOST_MS } from '../../fronts/messages.ts'
import { ReadLease } from '../../fronts/read-lease.ts'
import { ShownLog } from '../../fronts/shown-log.ts'
import { LogReader } from '../../keyserver/log-store.ts'
import { PublishedLog } from '../../keyserver/published-log.ts'
import { VrfPool } from '../../keyserver/vrf/vrf-pool.ts'
import { VRF_JOBS_WAITING_MAX } from '../../limits.ts'
import { machineMs } from '../../runtime/clock.ts'
import { FollowedStore } from '../../store/engine/followed-store.ts'
import { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { inboxNewsOf } from '../../store/messages/inbox-store.ts'
import type { ServedLog } from '../listeners.ts'
import { indexReaderOf, makerOf, readKeys } from '../open-log.ts'
import type { Process } from '../process/process.ts'

/** The first message of its parent. */
export type Welcome = Extract<MessageToFront, { kind: 'welcome' }>

export class Following {
  readonly store: FollowedStore
  readonly log: ServedLog
  /** In a node, whose copy may be older than the ledger. */
  readonly readLease: ReadLease | undefined
  readonly shownLog: ShownLog
  readonly #database: LmdbStore

  constructor({ config, world, onFault }: Process, parent: Link, { lastChange, head }: Welcome) {
    this.#database = LmdbStore.openReadOnly(config.dataFolder)
    this.store = new FollowedStore(this.#database, lastChange, inboxNewsOf, onFault)
    const logReader = new LogReader(this.store)
    const keys = readKeys(config)
    const published = new PublishedLog(logReader, keys.signer)
    const vrf = new VrfPool({
      secret: keys.vrfSecret,
      threads: Math.max(1, Math.floor(config.log.vrfThreads / Math.max(1, config.fronts))),
      cacheEntriesMax: config.log.vrfCacheEntriesMax,
      queueMax: VRF_JOBS_WAITING_MAX,
    })
    const index = indexReaderOf(this.store, keys, onFault)
    this.log = { keys, maker: makerOf(keys), published, index, vrf }
    const poll = () => parent.send({ kind: 'poll' } satisfies MessageToWriter)
    this.readLease = config.node && new ReadLease({ machineMs, world, poll })
    if (config.node !== undefined) parent.limitSilence(NODE_LOST_MS)
    const shown = {
      size: () => published.size,
      show(head: Welcome['head']) {
        logReader.follow(head.treeSize)
        published.publish(head)
      },
      lease: this.readLease,
      world,
    }
    this.shownLog = new ShownLog(shown, head)
  }

  close(): Promise<void> {
    return this.#database.close()
  }
}

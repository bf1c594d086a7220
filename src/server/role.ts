/** The roles of a process. A role has a member for each thing that it can do, and none for the rest. */

import type { Link } from '../fronts/link/link.ts'
import type { WriterLink } from '../fronts/writer-link.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { HttpServer } from '../transport/http.ts'
import type { OpenConnections } from '../transport/open-connections.ts'
import type { Following } from './fronts/following.ts'
import type { FrontDesks } from './fronts/front-desks.ts'
import type { RunningFronts } from './fronts/fronts.ts'
import type { WriterNews } from './fronts/writer-news.ts'
import type { CopyFollower } from './node/copy-follower.ts'
import type { LeaseKeeper } from './node/lease-keeper.ts'
import type { Process } from './process/process.ts'
import type { Signalling } from './signalling.ts'
import type { Writer } from './writer/writer.ts'

export type Role = MachineRole | FrontRole | NodeRole

/** The process of a server on one machine. */
export type MachineRole = Alone | WriterOfFronts | Stopped

/** A node's main process. One loop changes it (`node/node.ts`). */
export type NodeRole = FollowingNode | AcquiringNode | WritingNode | Stopped

/** Writes, and serves every client itself. */
export interface Alone {
  readonly kind: 'alone'
  readonly writer: Writer
  readonly http: HttpServer
}

/** Writes; its fronts serve the clients. */
export interface WriterOfFronts {
  readonly kind: 'writer'
  readonly writer: Writer
  readonly desks: FrontDesks
  readonly fronts: RunningFronts
}

/** Answers reads from the store of its parent, and forwards the rest to the writer. */
export interface FrontRole {
  readonly kind: 'front'
  readonly context: Process
  readonly system: ActorSystem
  readonly parent: Link
  readonly following: Following
  readonly news: WriterNews
  readonly signalling: Signalling
  readonly connections: OpenConnections
  readonly http: HttpServer
}

/** Keeps a copy of the ledger, for its fronts to answer from; another node writes. */
export interface FollowingNode {
  readonly kind: 'following node'
  readonly follower: CopyFollower
  /** To the node that writes. */
  readonly link: WriterLink
}

/** No node writes, and this one tries to. */
export interface AcquiringNode {
  readonly kind: 'acquiring'
  readonly follower: CopyFollower
  readonly link: WriterLink
  /** Undefined until it is this node's, and the copy has every change before it. */
  readonly lease: LeaseKeeper | undefined
}

/** Holds the lease, and writes for all nodes. */
export interface WritingNode {
  readonly kind: 'writing node'
  readonly lease: LeaseKeeper
  readonly writer: Writer
  readonly desks: FrontDesks
}

export interface Stopped {
  readonly kind: 'stopped'
}

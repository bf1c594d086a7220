/** The roles of a node's main process. One loop changes them (`node.ts`). */

import type { WriterLink } from '../../fronts/writer-link.ts'
import type { FrontDesks } from '../fronts/front-desks.ts'
import type { Stopped } from '../process/stages.ts'
import type { Tenure } from '../process/tenure.ts'
import type { Writer } from '../writer/writer.ts'
import type { CopyFollower } from './copy-follower.ts'
import type { LeaseKeeper } from './lease-keeper.ts'

export type NodeRole = FollowingNode | AcquiringNode | WritingNode | SteppingDownNode | Stopped

/** Keeps a copy of the ledger, from which its fronts answer; another node writes. */
export interface FollowingNode {
  readonly kind: 'following node'
  readonly follower: CopyFollower
  /** The link to the node that writes. */
  readonly link: WriterLink
}

/** No node writes, and this one tries to. */
export interface AcquiringNode {
  readonly kind: 'acquiring'
  readonly follower: CopyFollower
  readonly link: WriterLink
  /** Undefined until this node holds it and the copy has every earlier change. */
  readonly lease: LeaseKeeper | undefined
}

/** Is no longer the writer; what it had as the writer ends. */
export interface SteppingDownNode {
  readonly kind: 'stepping down'
}

/** Holds the lease, and writes for all nodes. */
export interface WritingNode {
  readonly kind: 'writing node'
  readonly lease: LeaseKeeper
  /** What it has only while it writes. */
  readonly tenure: Tenure
  readonly writer: Writer
  readonly desks: FrontDesks
}

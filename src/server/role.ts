/** The roles of a process. A role has a member for each of its abilities, and none for the rest. */

import type { Link } from '../fronts/link/link.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { HttpServer } from '../transport/http.ts'
import type { OpenConnections } from '../transport/open-connections.ts'
import type { Following } from './fronts/following.ts'
import type { FrontDesks } from './fronts/front-desks.ts'
import type { RunningFronts } from './fronts/fronts.ts'
import type { WriterNews } from './fronts/writer-news.ts'
import type { NodeRole } from './node/node-role.ts'
import type { Process } from './process/process.ts'
import type { RunningServer } from './process/running-server.ts'
import type { Stopped } from './process/stages.ts'
import type { Signalling } from './signalling.ts'
import type { Writer } from './writer/writer.ts'

export type Role = MachineRole | FrontRole | NodeRole

/** A server that says what it is at this moment. */
export interface ServerInRole extends RunningServer {
  readonly role: MachineRole | NodeRole
}

/** The process of a server on one machine. */
export type MachineRole = Alone | WriterOfFronts | Stopped

/** Writes, and serves every client itself. */
export interface Alone {
  readonly kind: 'alone'
  readonly writer: Writer
  readonly http: HttpServer
  readonly serverApi: HttpServer
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
  readonly serverApi: HttpServer
}

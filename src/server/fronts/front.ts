/**
 * One front: one of the processes that share the public port. It reads the writer's store, so it answers reads, lookups
 * and files of the log by itself, and has the writer do the rest. Its connections are actors here; users, calls and
 * topics are actors of the writer.
 */

import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { deserialize } from 'node:v8'
import { frontKind } from '../../../actors/front.ts'
import { LiveConnections } from '../../../actors/presence.ts'
import { Authentication } from '../../api/accounts/authentication.ts'
import { Admission } from '../../api/table/admission.ts'
import { RequestRates } from '../../api/table/request-rates.ts'
import { Keyholders } from '../../api/table/server-routes.ts'
import { shuffle } from '../../domain/shuffle.ts'
import { Acknowledgements } from '../../fronts/acknowledgements.ts'
import { LOAD_EVERY_MS } from '../../fronts/balance.ts'
import { CatchUp } from '../../fronts/catch-up.ts'
import { Link } from '../../fronts/link/link.ts'
import { linkKeyOf } from '../../fronts/link/link-proof.ts'
import {
  type Addresses,
  FRONT_SERVES,
  FRONT_SILENCE_MS_MAX,
  type MessageToFront,
  type MessageToWriter,
} from '../../fronts/messages.ts'
import { FRONT_STOP_MS } from '../../limits.ts'
import { RequestLog } from '../../operations/console/requests.ts'
import { observe, observeConnections } from '../../operations/figures.ts'
import { createLogger, type Logger } from '../../operations/log.ts'
import { realWorld } from '../../runtime/clock.ts'
import { ActorSystem } from '../../runtime/system.ts'
import { Newcomers } from '../../transport/newcomers.ts'
import { OpenConnections } from '../../transport/open-connections.ts'
import { alsoOnLoopback, ownUrlOf, portIn, serverApiUrlOf } from '../addresses.ts'
import { openReadStores } from '../application-stores.ts'
import { publicRoutes, publicServer, serverApiRoutes, serverApiServer } from '../listeners.ts'
import { endByFault } from '../process/end-process.ts'
import { Process } from '../process/process.ts'
import { pooledRandomBytes } from '../process/random-pool.ts'
import { type Stops, stopInStages } from '../process/stages.ts'
import { VERSION } from '../process/version.ts'
import { admitOf, openCommands, openReads } from '../reads.ts'
import type { FrontRole } from '../role.ts'
import type { Config } from '../settings/config.ts'
import { actorsOfFront, Signalling } from '../signalling.ts'
import { Following, type Welcome } from './following.ts'
import { frontRoutes, serverApiForwarded } from './front-routes.ts'
import { RemoteWriter } from './remote-writer.ts'
import { type ParentMessage, WriterNews } from './writer-news.ts'

type Stage = { readonly kind: 'joining' } | { readonly kind: 'joined'; readonly front: Front }

/** Joins its parent process at the other end of the socket, and serves until the parent stops it or is lost. */
export function startFront(socket: Duplex, name: string): void {
  const world = realWorld()
  const logger = createLogger('info').child({ front: name })
  const system = new ActorSystem({
    world,
    fatal: error => endByFault(logger, error),
    onFailure: ({ kind, error }) => logger.error({ event: 'actor-failed', kind, err: error }),
  })
  const acknowledgements = new Acknowledgements()
  let stage: Stage = { kind: 'joining' }
  new Link({
    socket,
    self: { name, version: VERSION },
    system,
    serves: FRONT_SERVES,
    silenceMsMax: FRONT_SILENCE_MS_MAX,
    world,
    onMessage: (data, parent) =>
      acknowledgements.of(data as MessageToFront, parent, message => {
        // At once: the next messages are of later changes.
        if (message.kind === 'welcome')
          stage = { kind: 'joined', front: openFront({ name, logger, system, parent }, message) }
        else if (stage.kind === 'joined') stage.front.onMessage(message)
        return undefined
      }),
    onLost: ({ message }) => {
      process.stderr.write(`callsign: ${name}: ${message}\n`)
      process.exit(1)
    },
  })
}

/** The parts of a front that exist before its welcome. */
interface Joining {
  readonly name: string
  readonly logger: Logger
  readonly system: ActorSystem
  readonly parent: Link
}

/** Makes each part of the front, and has it serve. */
function openFront({ name, logger, system, parent }: Joining, welcome: Welcome): Front {
  const config: Config = deserialize(welcome.config)
  logger.level = config.logLevel
  const context = new Process(config, logger, text => void process.stderr.write(text), { isFront: true })
  const { metrics, world, fatal } = context
  const following = new Following(context, parent, welcome)
  const { log, readLease, shownLog } = following
  const self = { name: config.node === undefined ? name : `${config.node.name}/${name}`, version: VERSION }
  const writer = new RemoteWriter(system, world, self.name)
  const shared = sharedParts(context, following, writer, welcome)
  const { publicUrl } = shared
  const [connections, newcomers] = [new OpenConnections(), new Newcomers()]
  const catchUp = new CatchUp(async () => {
    await writer.caughtUp()
    await readLease?.mayRead()
  })
  const live = new LiveConnections()
  const signalling = new Signalling({
    ...shared,
    system,
    actors: actorsOfFront(system, live, writer.actors),
    connections: live,
    hasTestTopics: config.hasTestTopics,
    authenticate(authorization) {
      readLease?.assertFresh()
      return shared.authentication.requesterOf(authorization)
    },
    runConnect(read, isConnect) {
      const run = () => newcomers.run(read)
      return isConnect ? catchUp.run(run) : run()
    },
    version: VERSION,
  })
  const news = new WriterNews(following, shared.stores.deviceInbox, {
    ...{ port: writer.port, parent, self, system, world, logger },
    tls: config.node?.tls,
    linkKey: linkKeyOf(log.keys.secret),
    onLost() {
      readLease?.end()
      shownLog.onWriterLost()
      signalling.onWriterLost(connections)
    },
  })
  const requests = config.isDevelopment ? new RequestLog(world.nowMs) : undefined
  const serving = { ...shared, ...(requests && { onRequester: requests.noteRequester }) }
  const reads = openReads(serving)
  const commands = openCommands({ ...serving, askRoom: writer.actors.rooms.ask })
  const { authentication, admission } = shared
  const served = { ...reads, authentication, admission, signalling }
  const own = publicRoutes(context, log, served, publicUrl)
  const ofServerApi = serverApiRoutes(
    serverApiForwarded(writer.desk, new Keyholders({ ...shared, ...shared.stores }), readLease),
    () => serverApiUrlOf(config, welcome.addresses),
  )
  const routes = frontRoutes(own, commands, following, welcome.routes, writer.desk)
  const mayReadFiles = () => shownLog.mayRead()
  const serverApi = serverApiServer(context, log, ofServerApi, { sharesPort: true, mayReadFiles })
  const http = publicServer(context, log, served, {
    routes: [...routes, ...(config.serverApi.isPublic ? ofServerApi : [])],
    ...{ publicUrl, connections, newcomers },
    sharesPort: true,
    mayReadFiles,
    onServed: requests && (request => writer.show(requests, request)),
  })
  observe(metrics, system, log.vrf)
  observeConnections(metrics, connections, newcomers)
  const front = new Front({
    kind: 'front',
    ...{ context, system, parent, following, news, signalling, connections, http, serverApi },
  })
  system.define(
    frontKind(
      () => metrics.text(),
      files => http.renewCertificate(files),
      settings => context.media.replace(settings),
      sockets => signalling.move(shuffle([...connections], world.random).slice(0, sockets)),
      () => void front.stop().catch(fatal),
    ),
  )
  front.listen(welcome.addresses).catch(fatal)
  return front
}

/** The parts that both its API and its signalling use. */
function sharedParts(
  { config, world, metrics, media, onFault }: Process,
  { store, log }: Following,
  writer: RemoteWriter,
  { addresses }: Welcome,
) {
  const { application, isDevelopment, rateLimits } = config
  const { nowMs, monotonicMs } = world
  const randomBytes = pooledRandomBytes
  const stores = openReadStores(store, () => writer.inboxWrites, {
    secret: log.keys.secret,
    lifetimes: application.lifetimes,
    historyDays: application.historyDays,
    nowMs,
    randomBytes,
    onFault,
  })
  const { onSeen, markPairUsed } = writer
  const authentication = new Authentication({ ...stores, nowMs, onSeen, markPairUsed })
  const requestRates = rateLimits && new RequestRates(rateLimits, monotonicMs)
  return {
    config: application,
    ...{
      stores,
      authentication,
      isDevelopment,
      requestRates,
      nowMs,
      monotonicMs,
      randomBytes,
      metrics,
      onFault,
    },
    idsAs: application.idsAs,
    language: application.language,
    admit: admitOf(media),
    admission: requestRates && new Admission(requestRates, authentication),
    publicUrl: () => config.publicUrl ?? ownUrlOf(config, addresses),
  }
}

class Front {
  readonly #role: FrontRole

  constructor(role: FrontRole) {
    this.#role = role
  }

  onMessage(message: ParentMessage): void {
    this.#role.news.onParent(message)
  }

  async listen(addresses: Addresses): Promise<void> {
    const { context, parent, following, connections, http, serverApi } = this.#role
    const { config } = context
    await following.log.vrf.ready
    await serverApi.listen(config.serverApi.host, portIn(addresses.serverApi))
    await alsoOnLoopback(config, http).listen(config.http.host, portIn(addresses.http))
    context.opened()
    parent.send({ kind: 'ready' } satisfies MessageToWriter)
    context.world.every(LOAD_EVERY_MS, () =>
      parent.sendSoon({ kind: 'load', sockets: connections.size } satisfies MessageToWriter),
    )
  }

  async stop(): Promise<void> {
    const { context, news, parent } = this.#role
    if (context.phase === 'stopping') return
    context.stopping()
    await stopInStages(
      () => [this.#stops],
      stage => context.logger.debug({ event: 'stop-stage', stage }),
    )
    news.close()
    parent.close()
    process.exit(0)
  }

  get #stops(): Stops {
    const { context, system, following, news, signalling, connections, http, serverApi } = this.#role
    return {
      listening() {
        http.stopListening()
        serverApi.stopListening()
      },
      clients() {
        const inRandomOrder = shuffle([...connections], context.world.random)
        return signalling.drain(inRandomOrder, FRONT_STOP_MS / 10, sleep)
      },
      requests: () => Promise.all([http, serverApi].map(each => each.answered(FRONT_STOP_MS / 5))),
      actors: () => system.drainAndStop(FRONT_STOP_MS / 5),
      inboxes: () => news.settled(),
      connections: () => connections.ended(FRONT_STOP_MS / 10),
      sockets() {
        http.close()
        serverApi.close()
      },
      services: () => following.log.vrf.close(),
      store: () => following.close(),
    }
  }
}

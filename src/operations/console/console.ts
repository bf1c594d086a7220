/**
 * The development console's side of the server: it hears of events, keeps the last ones, and answers under `/dev`. It
 * exists in development mode only; callers check for it first.
 */

import { SignalError } from '../../errors.ts'
import type { Figures } from '../../runtime/figures.ts'
import type { ServedRequest, ShownRequest } from '../../transport/http-deps.ts'
import type { HttpRoute } from '../../transport/route.ts'
import { jsonAnswer } from '../page-route.ts'
import { apiPageRoutes } from './api-page.ts'
import { Deliveries } from './deliveries.ts'
import { documentRoutes } from './documents.ts'
import type { ConsoleState } from './events.ts'
import {
  callFactOf,
  type DecidedCall,
  type DecidedCommand,
  type DecidedEffect,
  type Delivered,
  letterFactOf,
  liveCallOf,
  pushFactOf,
} from './facts.ts'
import { ConsoleFeed } from './feed.ts'
import { type GuardOptions, guardData, guardHost, guardPlace, HEADERS_OF_PLACE, isFromHere } from './guard.ts'
import { LiveView } from './live-view.ts'
import { pageRoutes } from './pages.ts'
import { RequestLog, type RequestReader } from './requests.ts'
import { type Reset, resetRoute } from './reset.ts'
import { Simulator, type SimulatorProgram } from './simulator.ts'

/** Facts the console reads from other parts on demand. */
export interface ConsoleSources extends GuardOptions {
  /** Where devices reach the media gateway, if there is one. */
  readonly mediaUrls?: readonly string[]
  readonly version: string
  readonly addresses: () => ConsoleState['addresses']
  readonly requests: RequestReader
  readonly log: () => ConsoleState['log']
  readonly displayNameOf: (userId: bigint) => string
  /** How many messages wait in the device's inbox. */
  readonly waitingFor: (userId: bigint, deviceId: bigint) => number
  readonly figures: () => Pick<Figures, 'kinds'>
  readonly simulatorProgram: () => SimulatorProgram
  readonly reset: Reset
}

export class DevConsole {
  readonly feed: ConsoleFeed
  readonly #requests: RequestLog
  readonly #deliveries: Deliveries
  readonly #live: LiveView
  readonly #simulator = new Simulator()

  /** `print` shows codes to who has started the server. */
  constructor(nowMs: () => number, print: (line: string) => void) {
    this.#requests = new RequestLog(nowMs)
    this.feed = new ConsoleFeed(nowMs, this.#requests)
    this.#deliveries = new Deliveries(nowMs, print)
    this.#live = new LiveView(nowMs)
  }

  /** A message leaves, or would leave. */
  readonly onDelivered = (delivered: Delivered): void => {
    this.#deliveries.record(delivered)
    this.feed.add(delivered.channel === 'push' ? pushFactOf(delivered) : letterFactOf(delivered))
  }

  /** A request's token was good. */
  readonly onRequester = (
    request: { readonly requestId: string },
    requester: { userId: bigint; deviceId?: bigint },
  ): void => this.#requests.noteRequester(request, requester)

  /** A request has its answer. */
  readonly onServed = (served: ServedRequest): void => {
    if (this.#requests.add(served)) this.feed.onRequest()
  }

  /** Fronts have answered requests. */
  readonly onServedByFront = (requests: readonly ShownRequest[]): void => {
    for (const shown of requests) this.#requests.put(shown)
    this.feed.onRequest()
  }

  /** The room of a call has carried out a command, and that is durable. */
  readonly onDecided = (
    command: DecidedCommand,
    call: DecidedCall,
    effects: readonly DecidedEffect[],
  ): void => {
    this.#live.putCall(call)
    const fact = callFactOf(command, call, effects)
    if (fact !== undefined) this.feed.add(fact)
  }

  readonly onPresence = (userId: bigint, deviceId: bigint, isOnline: boolean): void => {
    this.#live.putDevice(userId, deviceId, isOnline)
    this.feed.add({ type: 'connection', isOnline, userId: `${userId}`, deviceId: `${deviceId}` })
  }

  /** The log shows a new checkpoint; `checkpoint` is its signed text. */
  readonly onCheckpoint = ({ treeSize, checkpoint }: { treeSize: number; checkpoint: string }): void => {
    // Its third line is the root hash (c2sp.org/tlog-checkpoint).
    this.feed.add({ type: 'checkpoint', treeSize, rootHash: checkpoint.split('\n')[2] ?? '' })
  }

  /** Everything under `/dev` and `/docs`, for this machine alone. */
  routes(sources: ConsoleSources): readonly HttpRoute[] {
    const state: HttpRoute = {
      method: 'GET',
      path: '/dev/state',
      handle: () => jsonAnswer(200, JSON.stringify(this.#state(sources))),
    }
    const simulator = this.#simulator.route(sources.simulatorProgram)
    const data = [
      ...this.#deliveries.routes(),
      this.feed.route(),
      this.#requests.route(sources.requests),
      state,
      simulator,
      resetRoute(sources.reset),
    ]
    const pages = [...documentRoutes(), ...apiPageRoutes(), ...pageRoutes(undefined, sources.mediaUrls)]
    return [
      entrance(sources),
      ...pages.map(route => (route.path === '/dev' ? guardPlace : guardHost)(route, sources)),
      ...data.map(route => guardData(route, sources)),
    ]
  }

  /** Answers waiting requests and ends the simulator. Call as the server begins to stop. */
  stop(): void {
    this.feed.close()
    this.#simulator.end()
  }

  #state(sources: ConsoleSources): ConsoleState {
    const { version, addresses, log, figures, displayNameOf, waitingFor } = sources
    const { refusal } = sources.reset
    const { devices, deviceCount, calls, callCount } = this.#live.newest()
    const { state: simulator, trouble } = this.#simulator
    return {
      sequence: this.feed.sequence,
      startedAtMs: this.feed.startedAtMs,
      version,
      addresses: addresses(),
      log: log(),
      devices: devices.map(({ userId, deviceId, connectedAtMs }) => ({
        userId: `${userId}`,
        deviceId: `${deviceId}`,
        displayName: displayNameOf(userId),
        connectedAtMs,
        waiting: waitingFor(userId, deviceId),
      })),
      deviceCount,
      calls: calls.map(liveCallOf),
      callCount,
      actors: Object.entries(figures().kinds).map(([kind, figuresOfKind]) =>
        actorFigures(kind, figuresOfKind),
      ),
      ...(refusal === undefined ? {} : { resetRefusal: refusal }),
      ...(simulator === undefined ? {} : { simulator }),
      ...(trouble === undefined ? {} : { simulatorTrouble: trouble }),
    }
  }
}

/**
 * The server's address leads to the console, on a phone to the documents (the browser client needs https there); a
 * program finds nothing at `/`.
 */
function entrance(options: GuardOptions): HttpRoute {
  return {
    method: 'GET',
    path: '/',
    headers: ['accept', ...HEADERS_OF_PLACE],
    handle(request) {
      if (!request.header('accept').includes('text/html')) {
        throw new SignalError('NOT_FOUND', 'there is nothing at this path; people find the console at /dev')
      }
      const onPhones = options.publicUrl().startsWith('https:') ? '/dev/client' : '/docs'
      const location = isFromHere(request, options) ? '/dev' : onPhones
      return {
        status: 302,
        contentType: 'text/plain; charset=utf-8',
        body: `see ${location}\n`,
        noStore: true,
        headers: [['Location', location]],
      }
    },
  }
}

function actorFigures(
  kind: string,
  { live, turns, handlingMs, mailboxDepthMax, restarts }: Figures['kinds'][string],
): ConsoleState['actors'][number] {
  return { kind, live, turns, handlingMs: Math.round(handlingMs), mailboxDepthMax, restarts }
}

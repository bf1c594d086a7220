/** Messages to the fronts of a node, and their starts: the processes stand still, their links are real. */

import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { FrontLinks } from '../../../src/fronts/front-links.ts'
import { Link } from '../../../src/fronts/link/link.ts'
import { FRONT_SERVES, type MessageToFront } from '../../../src/fronts/messages.ts'
import type { LogHead } from '../../../src/log/checkpoint.ts'
import { generateKeys } from '../../../src/log/keys.ts'
import { OwnAddresses } from '../../../src/server/addresses.ts'
import type { FrontDesks } from '../../../src/server/fronts/front-desks.ts'
import type { FrontProcesses } from '../../../src/server/fronts/front-processes.ts'
import type { Fronts, RunningFronts } from '../../../src/server/fronts/fronts.ts'
import { NodeFronts } from '../../../src/server/node/node-fronts.ts'
import { openLog } from '../../../src/server/open-log.ts'
import { actorSystem, Process } from '../../../src/server/process/process.ts'
import { readConfig } from '../../../src/server/settings/config.ts'
import { ends } from '../../support/linked-nodes.ts'

const head = (treeSize: number): LogHead => ({ treeSize, checkpoint: `of ${treeSize}` })

/** The writer as fronts see it, with the head of the test. */
class TestDesks {
  head = head(1)
  readonly links: FrontLinks
  readonly join: FrontLinks['joinNear']

  constructor(context: Process) {
    const published = { size: 1, head: head(1), subscribe: () => undefined }
    this.links = new FrontLinks(published, context.world)
    this.join = front => this.links.joinNear(front)
  }

  leave(): void {}
}

/** Fronts that were started, each time with what they end by. */
class Started {
  readonly all: Fronts[] = []
  readonly #ends: (() => void)[] = []

  readonly start = (fronts: Fronts): RunningFronts => {
    this.all.push(fronts)
    const ended = new Promise<void>(resolve => this.#ends.push(resolve))
    const processes = { figures: { ready: 0, restarts: 0 } } as FrontProcesses
    return { fronts, processes, serving: new Promise(() => undefined), stop: () => ended }
  }

  end(): void {
    this.#ends.shift()!()
  }
}

async function openNode(t: Test) {
  const { origin, ktPrivateKey, vrfPrivateKey, secret } = generateKeys('kt.example.org/log', randomBytes)
  const keys = { CALLSIGN_ORIGIN: origin, KT_PRIVATE_KEY: ktPrivateKey, VRF_PRIVATE_KEY: vrfPrivateKey }
  const environment = { ...keys, CALLSIGN_SECRET: secret, CALLSIGN_DATA_DIR: t.testdir() }
  const config = readConfig(environment, { dev: true })
  const context = new Process(config, pino({ level: 'silent' }), () => undefined)
  const { database, vrf, store } = await openLog(context, undefined)
  t.teardown(async () => {
    await vrf.close()
    await database.close()
    context.close()
  })
  const addresses = new OwnAddresses(config)
  addresses.opened({
    http: 'http://127.0.0.1:1',
    grpc: '127.0.0.1:2',
    admin: 'http://127.0.0.1:3',
    serverApi: 'http://127.0.0.1:4',
  })
  const started = new Started()
  const system = actorSystem(context)
  const deps = { context, system, database, addresses, onPoll: () => undefined }
  const desks = new TestDesks(context)
  const fronts = new NodeFronts(deps, started.start)
  fronts.onRecorded(store.head()!.checkpoint)
  return { context, system, started, desks, fronts }
}

const asDesks = (desks: TestDesks) => desks as unknown as FrontDesks

/** A front's end of its link: what it hears, in order. */
function joinFront(t: Test, { context, system }: Awaited<ReturnType<typeof openNode>>, fronts: Fronts) {
  const heard: MessageToFront[] = []
  const [near, far] = ends()
  fronts.open(near, 'front-1')
  const link = new Link({
    socket: far,
    self: { name: 'front-1', version: '1.2.3' },
    system,
    serves: FRONT_SERVES,
    world: context.world,
    onMessage: message => void heard.push(message as MessageToFront),
  })
  t.teardown(() => link.close())
  return heard
}

/** Nothing is on its way any more. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await setImmediate()
}

t.test('fronts that end hear of heads and of the age of the copy until they have ended', async t => {
  const node = await openNode(t)
  const { fronts, started, desks } = node
  fronts.mayServe(true)
  fronts.serveBy(asDesks(desks))
  const heard = joinFront(t, node, started.all[0]!)
  await quiet()
  const stopped = fronts.stop()
  heard.length = 0
  desks.head = head(2)
  fronts.onApplied()
  fronts.current(node.context.world.monotonicMs())
  await quiet()
  t.match(heard, [{ kind: 'published', head: head(2) }, { kind: 'current' }])
  started.end()
  await stopped
  fronts.mayServe(true)
  t.equal(started.all.length, 1, 'none start again')
})

t.test('a node that becomes the writer while its fronts end starts new ones', async t => {
  const { fronts, started, desks } = await openNode(t)
  fronts.mayServe(true)
  fronts.mayServe(false)
  fronts.serveBy(asDesks(desks))
  t.equal(started.all.length, 1, 'two that share the port would be too many')
  started.end()
  await quiet()
  t.equal(started.all.length, 2)
})

t.test('a front hears where the writer is before it hears of a head that comes', async t => {
  const node = await openNode(t)
  const { fronts, started, desks } = node
  await desks.links.announce(head(2))
  fronts.mayServe(true)
  const first = joinFront(t, node, started.all[0]!)
  await quiet()
  fronts.serveBy(asDesks(desks))
  const later = joinFront(t, node, started.all[0]!)
  await quiet()
  const here = { kind: 'writer', at: 'here' }
  const coming = { kind: 'published', head: head(2), isComing: true }
  t.match(first.slice(-2), [here, coming], 'it was there when the node became the writer')
  t.match(later, [{ kind: 'welcome' }, here, coming])
})

t.test('a front that starts as its node steps down shows what the node showed as the writer', async t => {
  const node = await openNode(t)
  const { fronts, started, desks } = node
  fronts.mayServe(true)
  fronts.serveBy(asDesks(desks))
  desks.head = head(2)
  fronts.onApplied()
  fronts.follow(undefined)
  const heard = joinFront(t, node, started.all[0]!)
  await quiet()
  t.match(heard, [{ kind: 'welcome', head: head(2) }])
})

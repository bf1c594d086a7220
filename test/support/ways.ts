/**
 * Program: follows two ways through the built server, as it runs in production, and prints them (with `--json`, as JSON).
 *
 *     npm run --silent build && node dist/test/support/ways.js
 */

import uWS from 'uWebSockets.js'
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { App, newPublicKey } from './app.ts'
import { FunctionTrace, type Step } from './function-trace.ts'
import { headerOf } from './naive-stomp.ts'
import { productionEnvironment } from './outside-world.ts'
import { SocketClient } from './socket-client.ts'
import { besideWays, countWay, type Way } from './way.ts'

/** The steps between two moments, in a process where nothing else happens but what the server's own intervals do. */
class Recorder {
  readonly #startUp = new AsyncLocalStorage<true>()
  #steps: Step[] = []
  #lastFrame: string | undefined
  #stepsEver = 0

  /** Starts what later runs by itself, such as intervals: it is on no way. */
  startUp<Result>(run: () => Result): Result {
    return this.#startUp.run(true, run)
  }

  readonly onStep = (step: Step): void => {
    if (this.#startUp.getStore()) return
    this.#stepsEver += 1
    if (this.#lastFrame !== undefined) this.#steps.push(step)
  }

  /** Called when the server hands a frame to a socket. */
  readonly onFrame = (frame: string): void => {
    if (this.#lastFrame !== undefined && frame.startsWith(this.#lastFrame)) this.#lastFrame = undefined
  }

  /** Records until the server sends a frame of this command. */
  begin(untilCommand: string): void {
    this.#steps = []
    this.#lastFrame = `${untilCommand}\n`
  }

  take(): Step[] {
    return this.#steps
  }

  /** Resolves once nothing has run for a while: the work that an earlier request left is done. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.#stepsEver; ) {
      before = this.#stepsEver
      await setTimeout(QUIET_MS)
    }
  }
}

/** Has `onFrame` called with each frame that a WebSocket of this process is handed. */
function watchSockets(onFrame: (frame: string) => void): void {
  const { App } = uWS
  const watched: typeof App = (...options) => {
    const app = App(...options)
    const serve = app.ws.bind(app)
    return Object.assign(app, {
      ws: <Data>(path: string, behavior: uWS.WebSocketBehavior<Data>) =>
        serve<Data>(path, {
          ...behavior,
          open(socket) {
            const send = socket.send.bind(socket)
            socket.send = (message, ...rest) => {
              onFrame(Buffer.from(message as Uint8Array).toString())
              return send(message, ...rest)
            }
            return behavior.open?.(socket)
          },
        }),
    })
  }
  Object.assign(uWS, { App: watched })
}

interface Person {
  readonly app: App
  readonly userId: string
  readonly deviceId: string
}

async function signIn(http: string, email: string): Promise<Person> {
  const app = new App(http)
  const { challengeId } = await app.get(200, 'POST /app/api/login', { email, displayName: email })
  const { user } = app.take(await app.get(200, 'POST /app/api/verify-login', { challengeId, otp: CODE }))
  const publicKey = newPublicKey('P-256 SPKI')
  const { deviceId } = await app.get(201, 'POST /app/api/register_device', { publicKey })
  return { app, userId: user.userId, deviceId }
}

/** Takes a message, acknowledges it and returns once the server has it. */
async function acknowledge(phone: SocketClient): Promise<void> {
  const message = await phone.message()
  phone.write(`ACK\nid:${headerOf(message, 'ack')}\nreceipt:a\n\n\0`)
  await phone.receipt('a')
}

/** Starts a call; `onHead` is called when only the rest of the body is missing. */
async function startCall({ app }: Person, callee: Person, onHead: () => Promise<void>): Promise<string> {
  const encryptedAESKeys = { [`${callee.userId}_${callee.deviceId}`]: randomBytes(113).toString('base64') }
  const body = JSON.stringify({ calleeIds: [callee.userId], encryptedAESKeys, isVideo: true })
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    authorization: `Bearer ${app.accessToken}`,
  }
  const asked = request(`${app.http}/app/api/call/start`, { method: 'POST', headers })
  const answered = once(asked, 'response')
  asked.write(body.slice(0, 1))
  await onHead()
  asked.end(body.slice(1))
  const [response] = await answered
  let text = ''
  for await (const chunk of response) text += chunk
  return JSON.parse(text).callId
}

/** One call: it is started, the phone says that it rings, and the caller ends it. */
async function followCall(ann: Person, bob: Person, phone: SocketClient, recorder: Recorder) {
  const callId = await startCall(ann, bob, async () => {
    await recorder.quiet()
    recorder.begin('MESSAGE')
  })
  const invitation = recorder.take()
  await acknowledge(phone)
  await recorder.quiet()
  recorder.begin('RECEIPT')
  await phone.send(`/app/call/${callId}/ringing`, '')
  const receipt = recorder.take()
  await ann.app.get(200, 'POST /app/api/call/end', { callId })
  await acknowledge(phone)
  return { invitation, receipt }
}

async function followWays(folder: string) {
  const recorder = new Recorder()
  watchSockets(recorder.onFrame)
  const trace = await FunctionTrace.open(recorder.onStep)
  const { openServer } = await import('./open-server.ts')
  const environment = { ...productionEnvironment(), ...SETTINGS }
  const server = await recorder.startUp(() => openServer({ dataFolder: folder, dev: false, environment }))
  const ann = await signIn(server.http, ANN)
  const bob = await signIn(server.http, BOB)
  await ann.app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: bob.userId })
  await bob.app.get(200, 'POST /app/api/friend-request/accept', { userId: ann.userId })
  const phone = await SocketClient.connect('websocket', server.http, bob.app.accessToken!)
  await phone.subscribe('/user/queue/calls', 's', 'ack:client-individual\n')
  // A first call makes things that later calls find: they are on no way.
  await followCall(ann, bob, phone, recorder)
  await trace.start()
  const ways = await followCall(ann, bob, phone, recorder)
  phone.destroy()
  await server.end()
  const isBeside = besideWays()
  return { 'call/start': countWay(ways.invitation, isBeside), SEND: countWay(ways.receipt, isBeside) }
}

function print(name: string, { files, returns, beside }: Way): void {
  const lines = [
    `${name}: ${files.size} files, ${returns.length} returns`,
    ...Array.from(
      files,
      ([file, names]) => `  ${file}: ${[...names].map(each => each || '(closure)').join(', ')}`,
    ),
    ...returns.map(
      ({ file, name: to, from = 'outside' }) => `  return to ${file} ${to || '(closure)'} from ${from}`,
    ),
    `  beside: ${[...beside].join(', ')}`,
  ]
  process.stdout.write(`${lines.join('\n')}\n\n`)
}

const [ANN, BOB] = ['ann@example.org', 'bob@example.org']
const CODE = '424242'
const SETTINGS = {
  CALLSIGN_LOG_LEVEL: 'silent',
  CALLSIGN_TEST_IDENTIFIERS: JSON.stringify({ [ANN]: CODE, [BOB]: CODE }),
}
const QUIET_MS = 150

const folder = mkdtempSync(join(tmpdir(), 'ways-'))
const ways = await followWays(folder).finally(() => rmSync(folder, { recursive: true }))
if (process.argv.includes('--json')) {
  const figures = Object.entries(ways).map(([name, { files, returns }]) => {
    return [name, { files: files.size, returns: returns.length }]
  })
  process.stdout.write(JSON.stringify(Object.fromEntries(figures)))
} else {
  for (const [name, way] of Object.entries(ways)) print(name, way)
}

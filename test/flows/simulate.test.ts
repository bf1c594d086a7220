/** The simulator against the built server: each behaviour as a real person sees it, commands, and a little load. */

import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { FLAGS, readSettings } from '../../scripts/simulate/settings.ts'
import { parseOptions, UsageError } from '../../scripts/support/command.ts'
import { fingerprintOf } from '../support/call-key.ts'
import { freePort } from '../support/free-port.ts'
import { openServer } from '../support/open-server.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { startServer } from '../support/server.ts'
import { RealUser, RunningSimulator } from '../support/simulator.ts'
import { bySize, long, sized } from '../support/size.ts'

const OTP = '424242'
/** A minute is about a second. */
const PACE = ['--pace', '0.02']

const emails = Array.from({ length: 12 }, (_, at) => `rita${at}@example.org`)
const shared = await openServer({
  dataFolder: t.testdir(),
  environment: {
    CALLSIGN_TEST_IDENTIFIERS: JSON.stringify(Object.fromEntries(emails.map(email => [email, OTP]))),
  },
})
t.teardown(() => shared.end())
const { http } = shared

/** A real person, unknown to all. */
function newcomer(): Promise<RealUser> {
  return RealUser.signIn(http, emails.pop()!, OTP)
}

/** A real person who is a contact of one fake one, who reaches the server at `url`. */
async function meet(t: Test, behaviour: string, name: string, url = http) {
  const rita = await newcomer()
  const link = await rita.shareLink()
  const args = ['--people', behaviour, '--befriend', link, '--control', ...PACE]
  const simulator = new RunningSimulator(t, url, args)
  await simulator.line(/asks Rita Real to be a contact/)
  const userId = (await rita.acceptAll()).get(name)!
  await simulator.line(/is a contact of Rita Real now/)
  return { rita, simulator, userId }
}

t.test('who answers has the key that was sealed, and hangs up after a while', async t => {
  const { rita, simulator, userId } = await meet(t, 'answer', 'Anna Answers')
  const { callId, ...key } = await rita.call(userId)
  await simulator.line(/rings: Rita Real calls/)
  const [, fingerprint] = await simulator.line(/has the key, epoch 1, fingerprint (.*)$/)
  t.equal(fingerprint, await fingerprintOf(key, { callId, epoch: 1 }))
  await simulator.line(/answers$/)
  await simulator.line(/is out of the call: hangup/)
  t.match(await rita.lastCall(), { callId, status: 'ended', direction: 'outgoing' })
  simulator.closeInput()
  t.equal(await simulator.ended(), 0, 'it ends with its input')
  t.equal(simulator.stderr, '')
})

t.test('who answers has the key also when the answer to the join is lost', async t => {
  const proxy = await losingOneAnswer(t, /^POST \/app\/api\/call\/\d+\/join /)
  const { rita, simulator, userId } = await meet(t, 'answer', 'Anna Answers', proxy.url)
  const { callId, ...key } = await rita.call(userId)
  const [, fingerprint] = await simulator.line(/has the key, epoch 1, fingerprint (.*)$/)
  t.equal(fingerprint, await fingerprintOf(key, { callId, epoch: 1 }))
  await simulator.line(/answers$/)
  t.equal(proxy.lost(), 1)
  t.equal(simulator.stderr, '')
})

/** A way to the server on which the first answer to such a request does not arrive. */
async function losingOneAnswer(t: Test, request: RegExp): Promise<{ url: string; lost: () => number }> {
  let lost = 0
  const { hostname, port } = new URL(http)
  const proxy = createServer(socket => {
    const server = connect(Number(port), hostname)
    let isLosing = false
    socket.on('data', bytes => {
      isLosing ||= lost === 0 && request.test(bytes.toString('latin1'))
      server.write(bytes)
    })
    server.on('data', bytes => {
      if (!isLosing) return void socket.write(bytes)
      lost += 1
      socket.destroy()
    })
    socket.on('error', () => server.destroy()).on('close', () => server.destroy())
    server.on('error', () => socket.destroy()).on('close', () => socket.destroy())
  })
  t.teardown(() => proxy.close())
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, lost: () => lost }
}

t.test('who declines, declines; a second call goes to the same person', async t => {
  const { rita, simulator, userId } = await meet(t, 'decline', 'Dan Declines')
  const { callId } = await rita.call(userId)
  await simulator.line(/is out of the call: declined/)
  t.match(await rita.lastCall(), { callId, status: 'declined' })
  simulator.lines.length = 0
  await rita.call(userId)
  await simulator.line(/is out of the call: declined/)
  t.equal(await simulator.ended('SIGTERM'), 0)
})

t.test('who does not answer is missed', async t => {
  const { rita, simulator, userId } = await meet(t, 'time-out', 'Tina Timeout')
  const { callId } = await rita.call(userId)
  await simulator.line(/is out of the call: timeout/)
  t.match(await rita.lastCall(), { callId, status: 'missed' })
  t.equal(await simulator.ended('SIGTERM'), 0)
})

t.test('who drops leaves the call without a word, and is back when it is too late', async t => {
  const { rita, simulator, userId } = await meet(t, 'drop', 'Drew Drops')
  const { callId } = await rita.call(userId)
  await simulator.line(/loses the connection and the key/)
  await simulator.line(/is offline/)
  t.match(await rita.app.get(200, `GET /app/api/call/${callId}`), { status: 'active' }, 'nobody is told')
  simulator.lines.length = 0
  await simulator.line(/is online/)
  await simulator.line(/is out of the call: lost it/)
  await rita.app.get(200, 'POST /app/api/call/end', { callId })
  t.equal(await simulator.ended('SIGTERM'), 0)
})

t.test('who drops and rejoins asks for the key, and comes back with it', async t => {
  const { rita, simulator, userId } = await meet(t, 'drop-and-rejoin', 'Remy Rejoins')
  const { callId, ...key } = await rita.call(userId)
  await simulator.line(/loses the connection and the key/)
  simulator.lines.length = 0
  await simulator.line(/asks 1 other for the key/)
  await rita.grant(callId, key)
  const [, fingerprint] = await simulator.line(/has the key, epoch 1, fingerprint (.*)$/)
  t.equal(fingerprint, await fingerprintOf(key, { callId, epoch: 1 }))
  await simulator.line(/is in the call again/)
  const { participants } = await rita.app.get(200, `GET /app/api/call/${callId}/participants`)
  t.match(
    participants.map(({ state }: { state: string }) => state),
    ['joined', 'joined'],
  )
  t.equal(await simulator.ended('SIGTERM'), 0)
  t.match(await rita.lastCall(), { callId, status: 'ended' }, 'it hangs up before it goes')
})

t.test('a simulated person calls on command, and is answered', async t => {
  const { rita, simulator, userId } = await meet(t, 'answer', 'Anna Answers')
  simulator.tell({ kind: 'call', from: userId, to: rita.userId, isVideo: true })
  await simulator.line(/calls with video/)
  const [call] = (await rita.app.get(200, 'GET /app/api/call/pending')).items
  t.match(call, { isVideo: true, initiatorId: userId })
  const [, fingerprint] = await simulator.line(/has made a key, epoch 1, fingerprint (.*)$/)
  t.equal(await rita.answer(call.callId, userId), fingerprint)
  await simulator.line(/is answered/)
  simulator.tell({ kind: 'call', from: userId, to: rita.userId, isVideo: false })
  await simulator.line(/is out of the call: hangup/)
  t.match(simulator.stderr, /Anna Answers is in a call already/)
  t.equal(await simulator.ended('SIGTERM'), 0)
})

t.test('by --calls-you-after they call by themselves', async t => {
  const rita = await newcomer()
  const args = [
    '--people',
    'decline',
    '--befriend',
    await rita.shareLink(),
    '--calls-you-after',
    '0.01',
    ...PACE,
  ]
  const simulator = new RunningSimulator(t, http, args)
  await simulator.line(/asks Rita Real to be a contact/)
  await rita.acceptAll()
  await simulator.line(/calls with video/)
  await simulator.line(/is out of the call: hangup/)
  t.match(await rita.lastCall(), { direction: 'incoming', status: 'missed' }, 'they gave up')
})

t.test('by JSON lines it makes people, who accept requests, and says how they are', async t => {
  const rita = await newcomer()
  const simulator = new RunningSimulator(t, http, ['--json', '--control', ...PACE])
  t.match(await simulator.state(() => true), { people: [], calls: { started: 0, failed: 0 } })
  simulator.tell({ kind: 'people', behaviours: ['answer', 'answer', 'drop'] })
  const { people } = await simulator.state(state => state.people.length === 3)
  t.match(
    people.map(({ behaviour }: { behaviour: string }) => behaviour),
    ['answer', 'answer', 'drop'],
  )
  const [{ userId }] = people
  await rita.app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: userId })
  simulator.tell({ kind: 'befriend', shareToken: await rita.shareLink() })
  simulator.tell({ kind: 'stop' })
  await simulator.state(state => state.people.length === 3)
  simulator.lines.length = 0
  await simulator.state(state => state.people.length === 0)
  t.equal(simulator.stderr, '')
  simulator.closeInput()
  t.equal(await simulator.ended(), 0)
  t.match((await rita.app.get(200, 'GET /app/api/friend')).items, [{ userId }], 'who was asked has accepted')
})

t.test('lines that are no commands are reported, and do no harm', async t => {
  const simulator = new RunningSimulator(t, http, ['--json', '--control'])
  const seed = seedOf()
  t.comment(`CALLSIGN_SEED=${seed}`)
  const draw = randomFrom(seed)
  for (let at = 0; at < 200; at++) simulator.write(nonsense(draw))
  await simulator.state(({ trouble = '' }) => trouble.startsWith('no command: '))
  simulator.tell({ kind: 'befriend', shareToken: 'c_1234567890123456789012' })
  await simulator.state(({ trouble }) => trouble === 'there are no people yet')
  simulator.tell({ kind: 'call', from: '1', to: '2', isVideo: false })
  await simulator.state(state => state.trouble === 'there is nobody with the id 1')
  simulator.closeInput()
  t.equal(await simulator.ended(), 0)
})

t.test('a little load goes as it should', sized(), async t => {
  const args = ['--users', '20', '--calls-per-second', '5', '--seconds', `${bySize({ short: 1, long: 3 })}`]
  const simulator = new RunningSimulator(t, http, args)
  t.equal(await simulator.ended(), 0, simulator.stderr)
  const [, started] = await simulator.line(/^(\d+) calls of 20 users: .* 0 failed$/)
  t.ok(Number(started) > 0, `${started} calls`)
})

t.test('a server that is killed and started again loses no call', long(), async t => {
  const dataFolder = t.testdir()
  const environment = { CALLSIGN_HTTP_PORT: String(await freePort()) }
  const server = await startServer({ dataFolder, environment })
  const simulator = new RunningSimulator(t, server.http, ['--users', '12', '--calls-per-second', '4'])
  await simulator.line(/calls [1-9]\d* started/)
  await server.end('SIGKILL')
  await simulator.line(/online 0 of 12/)
  const restarted = await openServer({ dataFolder, environment })
  t.teardown(() => restarted.end())
  await simulator.line(/online 12 of 12, (2[4-9]|[3-9]\d) connects/)
  t.equal(await simulator.ended('SIGTERM'), 0, simulator.stderr)
})

t.test('the simulator reports the server’s rates in a sentence', async t => {
  const server = await openServer({ dataFolder: t.testdir(), environment: { CALLSIGN_RATE_LIMITS: '' } })
  t.teardown(() => server.end())
  const args = ['--users', '60', '--calls-per-second', '5', '--seconds', '1']
  const simulator = new RunningSimulator(t, server.http, args)
  t.equal(await simulator.ended(), 1)
  t.match(simulator.stderr, /start it with CALLSIGN_RATE_LIMITS=off/)
})

t.test('what it can not do is said in a sentence, with exit code 2', async t => {
  // Each wrong use ends the program as the first of the next list does.
  for (const [args, sentence] of [
    [['--users', '5'], /--users and --calls-per-second go together/],
    [['--users', '1', '--calls-per-second', '1'], /--users 1 is not a number from 2 up to/],
    [['--users', '5', '--calls-per-second', '1', '--people', 'drop'], /don't go together/],
    [['--befriend', 'http://example.org/'], /is no share link/],
    [['--pace', 'slow'], /--pace slow is not a number/],
    [['--dance'], /dance/],
    [['--url', 'ftp://example.org'], /is not the http or https address/],
  ] as const) {
    t.match(wrongUse(args), sentence, args.join(' '))
  }
  for (const [args, sentence] of [
    [['--people', 'answer,dance'], /dance is none of answer, /],
    [['--url', 'http://127.0.0.1:1'], /nothing answers at/],
    [['--people', 'answer', '--befriend', `${http}/c/c_1234567890123456789012`], /SHARE_TOKEN_NOT_FOUND/],
  ] as const) {
    const simulator = new RunningSimulator(t, http, args)
    t.equal(await simulator.ended(), 2, args.join(' '))
    t.match(simulator.stderr, sentence)
  }
  const help = new RunningSimulator(t, http, ['--help'])
  t.equal(await help.ended(), 0)
})

/** The sentence that these arguments are refused with before anything begins. */
function wrongUse(args: readonly string[]): string {
  const types = { alone: 'boolean', value: 'string' } as const
  const options = Object.entries(FLAGS).map(([name, kind]) => [name, { type: types[kind] }] as const)
  try {
    readSettings(parseOptions(Object.fromEntries(options), args))
    return 'taken'
  } catch (error) {
    if (error instanceof UsageError) return error.message
    throw error
  }
}

/** A line of bytes, of broken JSON, or of JSON that is no command. */
function nonsense(draw: () => number): Uint8Array {
  const kinds = ['people', 'befriend', 'call', 'load', 'dance']
  const values = [null, -1, 'x', [], {}, true, 1e300, ['answer', 'dance']]
  const pick = <Value>(from: readonly Value[]) => from[Math.floor(draw() * from.length)]!
  const said = {
    kind: pick(kinds),
    behaviours: pick(values),
    shareToken: pick([1, null, '', []]),
    users: pick(values),
  }
  const text = JSON.stringify(said)
  const cut = Math.floor(draw() * text.length)
  const line = pick([
    text,
    text.slice(0, cut),
    text.replace(':', ''),
    String.fromCharCode(...Array.from({ length: 20 }, () => draw() * 256)),
  ])
  return Buffer.from(`${line.replaceAll(/[\r\n]/g, '')}\n`)
}

/** The simulator's process: started with the first command, listened to within bounds, missed when it ends. */

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t, { type Test } from 'tap'
import type { SimulatorCommand } from '../../src/operations/console/events.ts'
import { Simulator } from '../../src/operations/console/simulator.ts'
import { parseSimulatorCommand } from '../../src/operations/console/simulator-command.ts'
import { builtProgram, spawnBound, startedProgram } from '../support/programs.ts'
import { routeAnswer } from '../support/route-answer.ts'

const STAND_IN = startedProgram('test/support/simulator-program')
const HOST = builtProgram('test/support/simulator-host')
const PEOPLE: SimulatorCommand = { kind: 'people', behaviours: ['answer'] }

/** The simulator, a way to command it, and a way to wait for what it says next. */
function openSimulator(t: Test, args: readonly string[] = []) {
  let onChanged = (): void => undefined
  const simulator = new Simulator(() => onChanged())
  t.teardown(() => simulator.end())
  return {
    simulator,
    command: (command: SimulatorCommand) => simulator.command(command, { file: STAND_IN, args }),
    changed: () =>
      new Promise<void>(resolve => {
        onChanged = resolve
      }),
  }
}

/** A port, a wait until a program is connected to it, and a wait until that is gone. */
async function holdOf(t: Test): Promise<{ port: string; begun: Promise<unknown>; gone: Promise<unknown> }> {
  const server = createServer()
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = String((server.address() as AddressInfo).port)
  const begun = once(server, 'connection')
  const gone = begun.then(([socket]) => once(socket.on('error', () => undefined).resume(), 'close'))
  return { port, begun, gone }
}

t.test('it is started with the first command, and told each one', async t => {
  const { simulator, command, changed } = openSimulator(t, ['--url', 'http://127.0.0.1:8080'])
  t.equal(simulator.state, undefined)
  t.match(command(PEOPLE), { people: [], calls: { started: 0 } }, 'nothing is known of it yet')
  await changed()
  t.match(simulator.state, { people: [{ displayName: 'people', doing: '--url http://127.0.0.1:8080' }] })
  t.match(command({ kind: 'call', from: '1', to: '2', isVideo: false }).people, [{ displayName: 'people' }])
  await changed()
  t.match(simulator.state?.people, [{ displayName: 'people' }, { displayName: 'call' }])
})

t.test("it is not given the server's secrets", async t => {
  process.env.CALLSIGN_SECRET = 'secret'
  t.teardown(() => delete process.env.CALLSIGN_SECRET)
  const { simulator, command, changed } = openSimulator(t)
  command(PEOPLE)
  await changed()
  t.match(simulator.state, { secrets: 'none' })
})

t.test('one that was told to stop is gone, without trouble; the next command starts another', async t => {
  const { simulator, command, changed } = openSimulator(t)
  command({ kind: 'stop' })
  t.equal(simulator.state, undefined, 'none is started to be stopped')
  command(PEOPLE)
  await changed()
  command({ kind: 'stop' })
  await changed()
  t.same([simulator.state, simulator.trouble], [undefined, undefined])
  command(PEOPLE)
  await changed()
  t.equal(simulator.state?.calls.started, 1)
})

const MISDEEDS = {
  fail: /ended with 3; something is wrong/,
  babble: /said what is no state/,
  endless: /a line of more than 2000000 characters/,
}
for (const [shareToken, trouble] of Object.entries(MISDEEDS)) {
  t.test(`one that misbehaves is gone, and it is said why: ${shareToken}`, async t => {
    const { simulator, command, changed } = openSimulator(t)
    command({ kind: 'befriend', shareToken })
    await changed()
    t.equal(simulator.state, undefined)
    t.match(simulator.trouble, trouble)
    command(PEOPLE)
    t.equal(simulator.trouble, undefined, 'that was the last one')
    while (simulator.state?.calls.started !== 1) await changed()
  })
}

t.test('empty lines say nothing', async t => {
  const { simulator, command, changed } = openSimulator(t)
  command({ kind: 'befriend', shareToken: 'halves' })
  await changed()
  t.equal(simulator.state?.calls.started, 1)
})

t.test('a program that is not there is trouble, not a fault', async t => {
  const { simulator, changed } = openSimulator(t)
  simulator.command(PEOPLE, { file: `${STAND_IN}.missing`, args: [] })
  await changed()
  t.match(simulator.trouble, /Cannot find module/)
})

t.test('it ends with the server', async t => {
  const { port, begun, gone } = await holdOf(t)
  const { simulator, command, changed } = openSimulator(t, ['--hold', port])
  command(PEOPLE)
  await Promise.all([begun, changed()])
  const isGone = changed()
  simulator.end()
  await Promise.all([gone, isGone])
  t.same([simulator.state, simulator.trouble], [undefined, undefined])
  t.throws(() => command(PEOPLE), { code: 'OVERLOADED' }, 'and none is started any more')
})

t.test('it ends when the server is killed', async t => {
  const { port, begun, gone } = await holdOf(t)
  const host = spawnBound(process.execPath, [HOST, STAND_IN, port], { stdio: ['ignore', 'pipe', 'inherit'] })
  await Promise.all([begun, once(host.stdout!, 'data')])
  host.kill('SIGKILL')
  await gone
  t.pass('it is gone, too')
})

t.test('a command comes by HTTP, and its answer is the state', async t => {
  const { simulator } = openSimulator(t)
  const route = simulator.route(() => ({ file: STAND_IN, args: [] }))
  t.match(await routeAnswer(route, { body: JSON.stringify(PEOPLE) }), { people: [], calls: { started: 0 } })
  await t.rejects(routeAnswer(route, { body: '{"kind":"rm -rf"}' }), { code: 'VALIDATION_FAILED' })
})

const COMMANDS: readonly SimulatorCommand[] = [
  { kind: 'people', behaviours: ['answer', 'decline', 'time-out', 'drop', 'drop-and-rejoin'] },
  { kind: 'befriend', shareToken: 'AAAA-BBBB' },
  { kind: 'call', from: '18446744073709551615', to: '2', isVideo: true },
  { kind: 'load', users: 1_000, callsPerSecond: 0.5 },
  { kind: 'stop' },
]

t.test('commands are read as they are, without foreign members', async t => {
  for (const command of COMMANDS) {
    t.same(parseSimulatorCommand(Buffer.from(JSON.stringify(command))), command)
    const more = { ...command, more: 1, __proto__: null }
    t.same(parseSimulatorCommand(Buffer.from(JSON.stringify(more))), command)
  }
})

t.test('any other command is refused', async t => {
  const refused: readonly object[] = [
    {},
    { kind: 'PEOPLE' },
    [],
    { kind: ['stop'] },
    { kind: 'people' },
    { kind: 'people', behaviours: [] },
    { kind: 'people', behaviours: ['sing'] },
    { kind: 'people', behaviours: Array.from({ length: 51 }, () => 'answer') },
    { kind: 'befriend' },
    { kind: 'befriend', shareToken: '' },
    { kind: 'befriend', shareToken: 'x'.repeat(501) },
    { kind: 'call', from: '1', to: '2' },
    { kind: 'call', from: 1, to: 2, isVideo: false },
    { kind: 'call', from: '1', to: '-2', isVideo: false },
    { kind: 'load', users: 1, callsPerSecond: 1 },
    { kind: 'load', users: 2.5, callsPerSecond: 1 },
    { kind: 'load', users: 10, callsPerSecond: 0 },
    { kind: 'load', users: 1e9, callsPerSecond: 1 },
    { kind: 'load', users: 10, callsPerSecond: 1e9 },
    { kind: 'load', users: '10', callsPerSecond: '1' },
  ]
  for (const said of refused) {
    const body = Buffer.from(JSON.stringify(said))
    t.throws(() => parseSimulatorCommand(body), { code: 'VALIDATION_FAILED' }, String(body).slice(0, 60))
  }
  for (const text of ['', '{', 'null', '1', '"stop"']) {
    t.throws(() => parseSimulatorCommand(Buffer.from(text)), { code: 'MALFORMED_JSON' }, text)
  }
})

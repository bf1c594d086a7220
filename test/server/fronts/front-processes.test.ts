/** Fronts as real processes: started, lost and started again, stopped, and gone with their writer. */

import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { TestWriter } from '../../support/front-writer.ts'
import { spawnBound, startedProgram } from '../../support/programs.ts'

function startWriter(t: Test, count: number, ...args: string[]): TestWriter {
  const writer = new TestWriter({ count, args })
  t.teardown(() => writer.stopNow())
  return writer
}

/** A writer of one front that has said who it is. */
async function writerOfOne(t: Test, ...args: string[]): Promise<{ writer: TestWriter; pid: number }> {
  const writer = startWriter(t, 1, ...args)
  await writer.until(() => writer.said.length === 1)
  return { writer, pid: writer.pidsOf('front-1')[0]! }
}

t.test('each front has a name, the arguments and a connection of its own', async t => {
  const writer = startWriter(t, 3, '--dev', 'x')
  t.same(writer.fronts.figures, { ready: 0, restarts: 0 })
  await writer.until(() => writer.said.length === 3)
  const names = ['front-1', 'front-2', 'front-3']
  t.same(
    writer.said.toSorted(),
    names.map(name => `${name} ${writer.pidsOf(name)[0]} --dev x`),
  )
  t.same(writer.fronts.figures, { ready: 3, restarts: 0 })
})

t.test('a front that is killed is started again, with a new connection', async t => {
  const { writer, pid } = await writerOfOne(t)
  process.kill(pid, 'SIGKILL')
  await writer.ended('front-1', 1)
  t.match(writer.ends('front-1'), [{ pid, code: null, signal: 'SIGKILL' }])
  t.same(writer.fronts.figures, { ready: 0, restarts: 0 })
  writer.world.advance(124)
  t.equal(writer.pidsOf('front-1').length, 1)
  writer.world.advance(126)
  await writer.until(() => writer.said.length === 2)
  t.equal(writer.pidsOf('front-1').length, 2)
  t.same(writer.fronts.figures, { ready: 1, restarts: 1 })
})

t.test('one that ends again and again waits longer each time, until it has stayed for a minute', async t => {
  const program = join(t.testdir({ 'brief.cjs': 'process.exit(7)' }), 'brief.cjs')
  const writer = new TestWriter({ count: 1, program })
  t.teardown(() => writer.stopNow())
  const bounds = [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]
  for (const [at, boundMs] of bounds.entries()) {
    const pauseMs = boundMs * (0.5 + writer.world.random() / 2)
    await writer.ended('front-1', at + 1)
    writer.world.advance(pauseMs - 1)
    t.equal(writer.pidsOf('front-1').length, at + 1, `not before ${pauseMs} ms`)
    writer.world.advance(1)
    t.equal(writer.pidsOf('front-1').length, at + 2, `after ${pauseMs} ms`)
  }
  t.match(writer.ends('front-1')[0], { code: 7, signal: null })
  // Its end is seen after the clock has moved.
  writer.world.advance(60_000)
  await writer.ended('front-1', bounds.length + 1)
  writer.world.advance(250)
  t.equal(writer.pidsOf('front-1').length, bounds.length + 2)
})

t.test('signals of a terminal or supervisor do not end a front', async t => {
  const { writer, pid } = await writerOfOne(t)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal)
  writer.links.get('front-1')!.send('ping')
  await writer.until(() => writer.said.at(-1) === 'pong')
  t.same(writer.ends('front-1'), [])
})

t.test('a front that loses its connection ends, and one that hangs is killed', async t => {
  const { writer, pid } = await writerOfOne(t)
  writer.sockets.get('front-1')!.destroy()
  await writer.ended('front-1', 1)
  t.match(writer.ends('front-1'), [{ pid, code: 1, signal: null }])
  writer.world.advance(250)
  await writer.until(() => writer.said.length === 2)
  process.kill(writer.pidsOf('front-1')[1]!, 'SIGSTOP')
  const socket = writer.sockets.get('front-1')!
  socket.destroy()
  await once(socket, 'close')
  writer.world.advance(1_000)
  await writer.ended('front-1', 2)
  t.match(writer.ends('front-1')[1], { signal: 'SIGKILL' })
})

t.test('a stop ends all, and none starts again', async t => {
  const writer = startWriter(t, 2)
  await writer.until(() => writer.said.length === 2)
  await writer.fronts.stop(1_000)
  for (const name of ['front-1', 'front-2']) t.match(writer.ends(name), [{ code: 0, signal: null }])
  writer.world.advance(60_000)
  t.equal(writer.lines.length, 4)
})

t.test('one that waits for its next start is not waited for', async t => {
  const { writer, pid } = await writerOfOne(t)
  process.kill(pid, 'SIGKILL')
  await writer.ended('front-1', 1)
  await writer.fronts.stop(1_000)
  writer.world.advance(60_000)
  t.equal(writer.pidsOf('front-1').length, 1)
})

t.test('a front that does not stop is killed at the deadline', async t => {
  const { writer } = await writerOfOne(t, 'deaf')
  const stopped = writer.fronts.stop(1_000)
  writer.world.advance(999)
  t.same(writer.ends('front-1'), [])
  writer.world.advance(1)
  await stopped
  t.match(writer.ends('front-1'), [{ code: null, signal: 'SIGKILL' }])
})

t.test('a writer that is killed leaves no front behind', async t => {
  const writer = spawnBound(process.execPath, [startedProgram('test/support/writer-program')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  writer.stdout!.on('data', (chunk: Buffer) => {
    output += chunk
    if (output === 'ready\n') writer.kill('SIGKILL')
  })
  // The front has the same output: it ends only when both have.
  await once(writer.stdout!, 'end')
  t.equal(output, 'ready\nlost\n')
})

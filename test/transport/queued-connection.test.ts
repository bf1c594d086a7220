/** Common to all connections: one write a turn, an end that waits, silence after the close, the shared budget. */

import { setImmediate as endOfTurn } from 'node:timers/promises'
import t from 'tap'
import { BACKLOG_BYTES } from '../../src/limits.ts'
import type { Accept, Connection } from '../../src/transport/connection.ts'
import { OpenConnections, type OpenConnectionsOptions } from '../../src/transport/open-connections.ts'
import { DROPPED, QueuedConnection } from '../../src/transport/queued-connection.ts'
import { fromUtf8 } from '../support/bytes.ts'

/** A connection with a list of calls for a socket. */
class PaperConnection extends QueuedConnection {
  readonly written: string[] = []
  /** Bytes the next write leaves. */
  unsentBytes = 0

  protected write(frames: readonly Uint8Array[], areText: readonly boolean[]): number {
    this.written.push(
      frames.map((frame, at) => `${areText[at] ? 'text' : 'binary'} ${frame.length}`).join(', '),
    )
    return this.unsentBytes
  }

  protected finish(code: number, reason: string): void {
    this.written.push(`end ${code} ${reason}`)
    this.onOver(code)
  }

  protected abort(): void {
    this.written.push('abort')
  }
}

interface House {
  readonly connections: OpenConnections
  readonly faults: unknown[]
  /** The sessions' events. */
  readonly heard: string[]
  open(): PaperConnection
}

/** Opens connections whose sessions write down what they hear, and then do as `session` says. */
function house(options: OpenConnectionsOptions = {}, session?: Accept): House {
  const connections = new OpenConnections(options)
  const faults: unknown[] = []
  const heard: string[] = []
  const accept: Accept = connection => {
    const events = session?.(connection)
    return {
      onBytes(bytes) {
        heard.push(`bytes ${bytes.length}`)
        events?.onBytes(bytes)
      },
      onDrain() {
        heard.push(`drain ${connection.bufferedBytes()}`)
        events?.onDrain()
      },
      onClosed(code) {
        heard.push(`closed ${code}`)
        events?.onClosed(code)
      },
    }
  }
  const parts = { accept, connections, onFault: (error: unknown) => faults.push(error) }
  const open = () => {
    const connection = new PaperConnection(parts, '', '')
    connection.open()
    return connection
  }
  return { connections, faults, heard, open }
}

const FRAME = fromUtf8('frame')

t.test('the frames of a turn are written once, in order, when its input has been read', async t => {
  const { open, connections } = house()
  const [one, other] = [open(), open()]
  one.send(FRAME, true)
  await null
  process.nextTick(() => one.send(fromUtf8('two'), false))
  other.send(FRAME, true)
  one.send(FRAME, true)
  t.same([one.bufferedBytes(), other.bufferedBytes(), connections.bufferedBytes], [10, 5, 15])
  await endOfTurn()
  t.same(one.written, ['text 5, text 5, binary 3'])
  t.same(other.written, ['text 5'])
  t.same([one.bufferedBytes(), connections.bufferedBytes], [0, 0])
  one.send(FRAME, true)
  await endOfTurn()
  t.same(one.written.slice(1), ['text 5'], 'and again in the next turn')
})

t.test('a frame sent while the turn is written goes out in the next one', async t => {
  const { open } = house({}, () => ({
    onBytes() {},
    onDrain() {},
    onClosed: () => other.send(FRAME, true),
  }))
  const [one, other] = [open(), open()]
  other.send(fromUtf8('x'), true)
  one.end(1000, '')
  await endOfTurn()
  await endOfTurn()
  t.same(other.written, ['text 1', 'text 5'])
})

t.test('more than five hundred connections are written in several turns', async t => {
  const { open } = house()
  const all = Array.from({ length: 1_201 }, open)
  for (const connection of all) connection.send(FRAME, true)
  const countWritten = () => all.filter(({ written }) => written.length > 0).length
  const counts: number[] = []
  while (counts.at(-1) !== all.length && counts.length < 5) {
    await endOfTurn()
    counts.push(countWritten())
    // More for a connection that still waits does not make it wait twice.
    all.at(-1)!.send(FRAME, true)
  }
  t.same(counts, [500, 1_000, 1_201])
  await endOfTurn()
  t.same(all.at(-1)!.written, ['text 5, text 5, text 5', 'text 5'])
})

t.test('unsent bytes are counted, for each and for all, until they are gone', async t => {
  const { open, connections, heard } = house()
  const [one, other] = [open(), open()]
  one.unsentBytes = 3
  one.send(FRAME, true)
  other.unsentBytes = 4
  other.send(FRAME, true)
  await endOfTurn()
  t.same([one.bufferedBytes(), other.bufferedBytes(), connections.bufferedBytes], [3, 4, 7])
  t.same(connections.worst(1), [other])
  t.same(connections.worst(5), [other, one])
  one.send(FRAME, true)
  t.equal(one.bufferedBytes(), 8)
  one.onWritten(1)
  one.onWritten(0)
  one.onWritten(0)
  t.same(heard, ['drain 6', 'drain 5'], 'nobody hears that nothing has left')
  one.unsentBytes = 0
  await endOfTurn()
  other.close()
  t.same([connections.bufferedBytes, connections.worst(5)], [0, []])
})

t.test('a session hears when much has left at once, and of little it does not', async t => {
  const { open, heard } = house()
  const connection = open()
  connection.send(new Uint8Array(BACKLOG_BYTES - 1), true)
  await endOfTurn()
  t.same(heard, [])
  connection.send(new Uint8Array(BACKLOG_BYTES), true)
  await endOfTurn()
  connection.unsentBytes = 7
  connection.send(new Uint8Array(BACKLOG_BYTES), true)
  await endOfTurn()
  t.same(heard, ['drain 0', 'drain 7'])
})

t.test('an end waits for earlier frames; later ones are not sent', async t => {
  const { open, heard, connections } = house()
  const connection = open()
  connection.unsentBytes = 5
  connection.send(FRAME, true)
  connection.end(1008, 'policy')
  connection.send(FRAME, true)
  connection.end(1000, 'again')
  connection.onInput(FRAME)
  t.same([connection.written, heard], [[], []], 'nothing happens inside the call')
  await endOfTurn()
  connection.onWritten(2)
  t.same(connection.written, ['text 5'])
  connection.onWritten(0)
  t.same(connection.written, ['text 5', 'end 1008 policy'])
  t.same(heard, ['closed 1008'])
  t.same([connections.size, connections.bufferedBytes], [0, 0])
})

t.test('an end with nothing to send comes at the end of the turn', async t => {
  const { open } = house()
  const connection = open()
  connection.end(1000, '')
  await endOfTurn()
  t.same(connection.written, ['end 1000 '])
})

t.test('an end that takes too long is a close', async t => {
  const { open, heard } = house({ lingerMs: 5 }, () => ({
    onBytes() {},
    onDrain() {},
    onClosed: () => onClosed(),
  }))
  let onClosed = () => {}
  const closed = new Promise<void>(resolve => {
    onClosed = resolve
  })
  const connection = open()
  connection.unsentBytes = 5
  connection.send(FRAME, true)
  connection.end(4410, 'slow')
  await endOfTurn()
  connection.onWritten(4)
  // The deadline alone does not keep a process running.
  const keepAlive = setInterval(() => {}, 1_000)
  await closed
  clearInterval(keepAlive)
  t.same(connection.written, ['text 5', 'abort'])
  t.same(heard, ['closed 1006'])
})

t.test('after the close every call does nothing, and the session hears it once', async t => {
  const { open, heard, connections } = house({}, connection => ({
    onBytes() {},
    onDrain() {},
    onClosed: () => useAll(connection),
  }))
  const useAll = (connection: Connection) => {
    connection.send(FRAME, true)
    connection.end(1000, '')
    connection.close()
  }
  const connection = open()
  connection.send(FRAME, true)
  connection.close()
  useAll(connection)
  connection.onInput(FRAME)
  connection.onWritten(7)
  connection.onOver(1000)
  await endOfTurn()
  t.same(connection.written, ['abort'])
  t.same(heard, ['closed 1006'])
  t.same([connection.bufferedBytes(), connections.bufferedBytes, connections.size], [0, 0, 0])
})

t.test('a connection whose receiver would miss a frame is closed', async t => {
  const { open, heard, connections } = house()
  const connection = open()
  connection.unsentBytes = DROPPED
  connection.send(FRAME, true)
  await endOfTurn()
  t.same(connection.written, ['text 5', 'abort'])
  t.same([heard, connections.bufferedBytes], [['closed 1006'], 0])
})

t.test('a session that fails ends its connection with 1011, whenever it fails', async t => {
  for (const moment of ['accept', 'onBytes', 'onDrain'] as const) {
    const failAt = (at: string) => {
      if (at === moment) throw new Error(at)
    }
    const { open, faults, heard } = house({}, () => {
      failAt('accept')
      return { onBytes: () => failAt('onBytes'), onDrain: () => failAt('onDrain'), onClosed() {} }
    })
    const connection = open()
    connection.onInput(FRAME)
    connection.unsentBytes = 2
    connection.send(FRAME, true)
    await endOfTurn()
    connection.onWritten(1)
    connection.onWritten(0)
    await endOfTurn()
    t.match(connection.written.at(-1), /^end 1011/, moment)
    t.match(faults, [{ message: moment }], moment)
    t.equal(heard.at(-1), moment === 'accept' ? undefined : 'closed 1011', moment)
  }
})

t.test('a session that fails on hearing of the close harms nothing', async t => {
  const { open, faults, connections } = house({}, () => ({
    onBytes() {},
    onDrain() {},
    onClosed() {
      throw new Error('closed')
    },
  }))
  open().close()
  t.match(faults, [{ message: 'closed' }])
  t.equal(connections.size, 0)
})

t.test('a connection that its session closes on opening has ended', async t => {
  const { open, heard, connections } = house({}, connection => {
    connection.send(FRAME, true)
    connection.close()
    return { onBytes() {}, onDrain() {}, onClosed() {} }
  })
  const connection = open()
  t.same([heard, connections.size], [['closed 1006'], 0])
  await endOfTurn()
  t.same(connection.written, ['abort'])
})

t.test('when all of them have too much unsent, those with the most are closed', async t => {
  const { open, connections } = house({ bufferedBytesMax: 100 })
  const all = [10, 45, 30, 14].map(bytes => {
    const connection = open()
    connection.unsentBytes = bytes
    connection.send(FRAME, true)
    return connection
  })
  await endOfTurn()
  t.same([connections.bufferedBytes, connections.shedCount], [99, 0])
  const last = open()
  last.unsentBytes = 2
  last.send(FRAME, true)
  await endOfTurn()
  t.same(
    all.map(({ written }) => written.includes('abort')),
    [false, true, false, false],
  )
  t.same([connections.bufferedBytes, connections.shedCount, connections.size], [56, 1, 4])
})

t.test('there is room for so many connections, by default for most files that may be open', async t => {
  const { open, connections } = house({ connectionsMax: 2 })
  const [one] = [open(), open()]
  t.equal(connections.isFull, true)
  t.same([...connections].length, 2)
  one.close()
  t.equal(connections.isFull, false)
  t.equal(house().connections.isFull, false)
})

t.test('no two connections have the same id', async t => {
  const { open } = house()
  t.equal(new Set(Array.from({ length: 1_000 }, () => open().id)).size, 1_000)
})

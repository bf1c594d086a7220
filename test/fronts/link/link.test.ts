/** Actors of two processes: what the one tells or asks, the other handles as if it were its own. */

import { randomBytes } from 'node:crypto'
import { pack } from 'msgpackr'
import t from 'tap'
import { SignalError } from '../../../src/errors.ts'
import { frameHead } from '../../../src/fronts/link/frames.ts'
import { LINK_FORM } from '../../../src/fronts/link/link.ts'
import { FrameMac } from '../../../src/fronts/link/link-proof.ts'
import type { Ref, Reply } from '../../../src/runtime/actor.ts'
import { Broadcast } from '../../../src/stomp/broadcast.ts'
import { kindOf } from '../../support/actors.ts'
import { Deferred } from '../../support/deferred.ts'
import { ends, LinkedNodes, linkedNodes, type Node, nodeAt } from '../../support/linked-nodes.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

type Message = Readonly<Record<string, unknown>>
type Question = { readonly kind: 'question'; readonly of: string; readonly reply: Reply<unknown> }

const question =
  (of: string) =>
  (reply: Reply<unknown>): Question => ({ kind: 'question', of, reply })

/** Every message that a node's probes handle, by probe. */
function listen({ system }: Pick<Node, 'system'>, options = {}): string[] {
  const heard: string[] = []
  system.define(kindOf<Message>(({ n }, _context, id) => heard.push(`${id} ${n}`), options))
  return heard
}

const probeOf = ({ system, link }: Node, id: string) => system.remoteRef<Message>(link, 'probe', id)

t.test('messages of any form arrive whole and in order, control ahead of them', async t => {
  const nodes = linkedNodes()
  const seen: Message[] = []
  nodes.writer.system.define(kindOf<Message>(message => seen.push(message)))
  const probe = probeOf(nodes.front, 'a')
  const message = {
    kind: 'm',
    id: 2n ** 64n - 1n,
    small: 7n,
    none: undefined,
    bytes: Buffer.from([0, 255]),
    list: [1.5, 'é'],
  }
  t.equal(probe.tell(message), 'accepted')
  probe.tell({ kind: 'second' })
  probe.tellControl({ kind: 'first' })
  await nodes.settle()
  t.same(seen, [{ kind: 'first' }, message, { kind: 'second' }])
  t.same([nodes.front.peers, nodes.writer.peers], [['writer'], ['front']])
})

t.test('a process whose actors have stopped still tells and asks the other one', async t => {
  const nodes = linkedNodes()
  const heard: unknown[] = []
  nodes.writer.system.define(
    kindOf<Question>(({ of, reply }) => {
      heard.push(of)
      reply?.answer('written')
    }),
  )
  const stopped = nodes.front.system.drainAndStop(1_000)
  await nodes.settle()
  t.equal(await stopped, 'finished')
  const probe = nodes.front.system.remoteRef<Question>(nodes.front.link, 'probe', 'a')
  t.equal(probe.tell({ kind: 'question', of: 'told' } as Question), 'accepted')
  const asked = probe.ask<string>(question('asked'), 1_000)
  await nodes.settle()
  t.equal(await asked, 'written')
  t.same(heard, ['told', 'asked'])
})

t.test('messages that are told as the beat is due arrive all the same', async t => {
  const nodes = linkedNodes()
  const heard = listen(nodes.writer)
  for (let n = 1; n <= 3; n++) {
    await nodes.advance(1_000)
    probeOf(nodes.front, 'a').tell({ kind: 'm', n })
    probeOf(nodes.front, 'b').tellControl({ kind: 'm', n })
    // The beat comes before the turn ends.
    nodes.front.world.jump(500)
    await nodes.settle()
    nodes.writer.world.advance(500)
  }
  t.same(heard.toSorted(), ['a 1', 'a 2', 'a 3', 'b 1', 'b 2', 'b 3'])
  t.same([nodes.front.lost, nodes.writer.lost], [[], []])
})

t.test('between nodes a frame that was changed, left out, repeated or moved ends the link', async t => {
  const [key, ofWriter] = [randomBytes(32), randomBytes(32)]
  const changed = (octets: Buffer, at: number) => {
    const copy = Buffer.from(octets)
    copy[at]! ^= 1
    return copy
  }
  const ways: Record<string, (one: Buffer, two: Buffer, three: Buffer) => Buffer[]> = {
    'as they were sent': (...frames) => frames,
    changed: (one, two, three) => [one, changed(two, two.length - 1), three],
    'a MAC that is changed': (one, two, three) => [one, changed(two, 10), three],
    'left out': (_one, two, three) => [two, three],
    repeated: (one, two, three) => [one, one, two, three],
    moved: (one, two, three) => [one, three, two],
  }
  for (const [name, way] of Object.entries(ways)) {
    const [one, other] = ends()
    const [sent, received] = [new FrameMac(key), new FrameMac(ofWriter)]
    const front = nodeAt(one, 'front', { macs: { sent, received } })
    const writer = nodeAt(other, 'writer', {
      macs: { sent: new FrameMac(ofWriter), received: new FrameMac(key) },
    })
    const heard = listen(writer)
    const nodes = new LinkedNodes(front, writer)
    await nodes.settle()
    const { push } = other
    const frames: Buffer[] = []
    other.push = (octets: Buffer) => frames.push(octets) > 0
    for (const n of [1, 2, 3]) {
      probeOf(front, 'a').tell({ kind: 'm', n })
      await nodes.settle()
    }
    push.call(other, Buffer.concat(way(frames[0]!, frames[1]!, frames[2]!)))
    await nodes.settle()
    const isWhole = name === 'as they were sent'
    t.same(
      [heard.length === 3, writer.lost.map(({ by }) => by)],
      [isWhole, isWhole ? [] : ['malformed']],
      name,
    )
    t.notOk(
      heard.some((each, at) => each !== `a ${at + 1}`),
      'in order',
    )
  }
})

t.test('an ask comes back with the answer, or with the whole refusal', async t => {
  const nodes = linkedNodes()
  nodes.writer.system.define(
    kindOf<Question>(({ of, reply }) => {
      if (of === 'known') reply.answer({ index: 5n })
      else
        reply.refuse(
          new SignalError('EPOCH_CONFLICT', 'the key is another one', { members: { keyEpoch: 4 } }),
        )
    }),
  )
  const probe = nodes.front.system.remoteRef<Question>(nodes.front.link, 'probe', 'a')
  const [known, unknown] = [probe.ask(question('known'), 1_000), probe.ask(question('unknown'), 1_000)]
  const refused = t.rejects(unknown, {
    code: 'EPOCH_CONFLICT',
    message: 'the key is another one',
    members: { keyEpoch: 4 },
  })
  await nodes.settle()
  t.same(await known, { index: 5n })
  await refused
  for (const { system } of [nodes.front, nodes.writer]) t.equal(system.figures().asksOpen, 0)
})

t.test('answers and refusals wait for what must come before them, which may refuse them', async t => {
  const before: Deferred<void>[] = []
  const kinds: string[] = []
  const beforeAnswer = (kind: string) => {
    kinds.push(kind)
    if (kinds.length > 3) return undefined
    before.push(new Deferred<void>())
    return Promise.resolve(before.at(-1)!)
  }
  const nodes = linkedNodes({}, { beforeAnswer })
  nodes.writer.system.define(
    kindOf<Question>(({ of, reply }) =>
      of === 'no' ? reply.refuse(new SignalError('NOT_FOUND', 'there is none')) : reply.answer(of),
    ),
  )
  const heard: string[] = []
  const ask = (of: string) =>
    probeOf(nodes.front, of)
      .ask<string>(question(of) as never, 1_000)
      .then(
        answer => heard.push(answer),
        error => heard.push(error.code),
      )
  for (const of of ['first', 'no', 'no', 'last']) {
    void ask(of)
    await nodes.settle()
  }
  t.same(heard, ['last'], 'others do not wait')
  before[0]!.resolve()
  before[1]!.resolve()
  before[2]!.reject(new SignalError('OUTCOME_UNKNOWN', 'another node may be the writer'))
  await nodes.settle()
  t.same(heard, ['last', 'first', 'NOT_FOUND', 'OUTCOME_UNKNOWN'])
  t.same(kinds, ['probe', 'probe', 'probe', 'probe'])
})

t.test('an ask without an answer ends at its deadline on both sides', async t => {
  const nodes = linkedNodes()
  const replies: Reply<unknown>[] = []
  nodes.writer.system.define(kindOf<Question>(({ reply }) => replies.push(reply)))
  const probe = nodes.front.system.remoteRef<Question>(nodes.front.link, 'probe', 'a')
  const refused = t.rejects(probe.ask(question('x'), 1_000), { code: 'DEADLINE_EXCEEDED' })
  await nodes.advance(1_500)
  await refused
  replies[0]!.answer('too late')
  await nodes.settle()
  for (const { system, lost } of [nodes.front, nodes.writer])
    t.same([system.figures().asksOpen, lost], [0, []])
})

t.test('an actor that there is not refuses an ask from elsewhere, too', async t => {
  const nodes = linkedNodes()
  nodes.writer.system.define(kindOf<Question>(() => {}, { create: () => undefined }))
  const probe = nodes.front.system.remoteRef<Question>(nodes.front.link, 'probe', 'a')
  const refused = t.rejects(probe.ask(question('x'), 1_000), { code: 'NOT_FOUND' })
  await nodes.settle()
  await refused
})

t.test('an address in a message leads back to where it came from', async t => {
  const nodes = linkedNodes()
  const heard = listen(nodes.front)
  const returned: unknown[] = []
  nodes.writer.system.define(
    kindOf<{ from: Ref<Message>; reply: Reply<unknown> }>(({ from, reply }) => {
      from.tell({ kind: 'm', n: 1 })
      reply.answer({ from })
    }),
  )
  const own = nodes.front.system.ref<Message>('probe', 'own')
  const probe = nodes.front.system.remoteRef<Message>(nodes.front.link, 'probe', 'a')
  const asked = probe.ask<{ from: Ref<Message> }>(reply => ({ kind: 'm', from: own, reply }), 1_000)
  asked.then(({ from }) => {
    returned.push(from.id)
    from.tell({ kind: 'm', n: 2 })
  })
  await nodes.settle()
  t.same([heard, returned], [['own 1', 'own 2'], ['own']])
})

t.test('where the mailbox there is full, its actor gets the other message', async t => {
  const nodes = linkedNodes()
  const heard = listen(nodes.writer, { mailboxMessagesMax: 2 })
  const probe = probeOf(nodes.front, 'a')
  for (const n of [1, 2, 3]) probe.tellOr({ kind: 'm', n }, { kind: 'm', n: `not ${n}` })
  await nodes.settle()
  t.same(heard, ['a not 3', 'a 1', 'a 2'])
})

t.test('a message to many is written once, and its broadcast stays one', async t => {
  const nodes = linkedNodes()
  const seen = new Set<unknown>()
  let count = 0
  nodes.front.system.define(
    kindOf<{ broadcast: Broadcast }>(({ broadcast }) => {
      count += 1
      seen.add(broadcast)
    }),
  )
  const message = {
    kind: 'm',
    broadcast: new Broadcast('an-event', [['type', 'x']] as never, randomBytes(1_000)),
  }
  let written = 0
  nodes.front.end.on('data', (chunk: Buffer) => {
    written += chunk.length
  })
  for (let at = 0; at < 100; at++)
    nodes.writer.system.remoteRef<Message>(nodes.writer.link, 'probe', `c${at}`).tell(message)
  await nodes.settle()
  t.same([count, seen.size], [100, 1])
  t.ok(written < 3_000, `${written} octets`)
})

t.test(
  'what goes through a link in pieces of any size arrives in the order in which it was told',
  async t => {
    const seed = seedOf()
    t.comment(`CALLSIGN_SEED=${seed}`)
    const random = randomFrom(seed)
    const [one, other] = ends()
    const writer = nodeAt(other, 'writer')
    const { push } = other
    other.push = chunk => {
      if (!(chunk instanceof Buffer)) return push.call(other, chunk)
      for (let at = 0; at < chunk.length; ) {
        const length = 1 + Math.floor(random() * 40)
        push.call(other, chunk.subarray(at, at + length))
        at += length
      }
      return true
    }
    const front = nodeAt(one, 'front')
    const heard = listen(writer)
    const told: string[] = []
    for (let n = 0; n < 500; n++) {
      const id = `p${Math.floor(random() * 4)}`
      const members = Object.fromEntries(
        Array.from({ length: Math.floor(random() * 5) }, (_, at) => [`m${n % 97}${at}`, random()]),
      )
      probeOf(front, id).tell({ kind: 'm', n, ...members })
      told.push(`${id} ${n}`)
      if (random() < 0.1) await front.world.settle()
    }
    for (let round = 0; round < 3; round++) for (const { world } of [front, writer]) await world.settle()
    for (const id of ['p0', 'p1', 'p2', 'p3']) {
      const of = (all: string[]) => all.filter(each => each.startsWith(`${id} `))
      t.same(of(heard), of(told))
    }
  },
)

t.test('with the link its asks end, and later messages are dead letters', async t => {
  const nodes = linkedNodes()
  nodes.writer.system.define(kindOf<Question>(() => {}))
  const probe = nodes.front.system.remoteRef<Message>(nodes.front.link, 'probe', 'a')
  const refused = t.rejects(probe.ask(question('x'), 60_000), { code: 'OUTCOME_UNKNOWN' })
  await nodes.settle()
  nodes.writer.end.destroy()
  await nodes.settle()
  await refused
  t.equal(probe.tell({ kind: 'm' }), 'overloaded')
  probe.tellControl({ kind: 'm' })
  await t.rejects(probe.ask(question('x'), 60_000), { code: 'OVERLOADED' })
  const { deadLetters, asksOpen } = nodes.front.system.figures()
  t.same([deadLetters.unreachable, asksOpen], [3, 0])
  t.same([nodes.front.lost.length, nodes.writer.lost.length], [1, 1])
  t.equal(nodes.front.world.intervalsRunning, 1, 'only the actor system still ticks')
})

t.test(
  'a link that is closed on purpose has sent what was told, and only the other end has lost it',
  async t => {
    const nodes = linkedNodes()
    const heard = listen(nodes.writer)
    probeOf(nodes.front, 'a').tell({ kind: 'm', n: 1 })
    nodes.front.link.close()
    await nodes.settle()
    t.same([heard, nodes.front.lost.length, nodes.writer.lost.length], [['a 1'], 0, 1])
  },
)

t.test('an end that reads slowly refuses messages aloud and gets all that were accepted', async t => {
  const nodes = linkedNodes({ waitingBytesMax: 100_000 })
  const heard = listen(nodes.writer, { mailboxMessagesMax: 100_000 })
  await nodes.settle()
  nodes.front.end.isHeld = true
  const probe = probeOf(nodes.front, 'a')
  let accepted = 0
  while (probe.tell({ kind: 'm', n: accepted, body: 'x'.repeat(1_000) }) === 'accepted') {
    accepted += 1
    await nodes.front.world.settle()
  }
  t.ok(accepted > 50 && accepted < 150, `${accepted} accepted`)
  await t.rejects(
    probe.ask(reply => ({ kind: 'q', reply }), 1_000),
    { code: 'OVERLOADED' },
  )
  nodes.front.end.release()
  await nodes.settle()
  t.equal(heard.length, accepted)
  t.equal(probe.tell({ kind: 'm', n: 0 }), 'accepted')
})

t.test('an end that never reads is given up when even control messages have no room', async t => {
  const nodes = linkedNodes({ waitingBytesMax: 1_000 })
  await nodes.settle()
  nodes.front.end.isHeld = true
  const probe = probeOf(nodes.front, 'a')
  for (let at = 0; at < 40 && nodes.front.lost.length === 0; at++) {
    probe.tellControl({ kind: 'm', body: Buffer.alloc(1_048_576) })
    await nodes.front.world.settle()
  }
  t.match(nodes.front.lost[0]!.message, /too slow/)
})

t.test(
  'an end that says nothing for two seconds is given up, and not for a pause of this process',
  async t => {
    const nodes = linkedNodes()
    await nodes.advance(10_000)
    t.same([nodes.front.lost, nodes.writer.lost], [[], []])
    nodes.front.world.jump(5_000)
    await nodes.settle()
    nodes.front.world.advance(400)
    t.same(nodes.front.lost, [], 'it slept itself')
    nodes.writer.end.isHeld = true
    for (let ms = 0; ms < 3_000; ms += 100) nodes.front.world.advance(100)
    t.match(nodes.front.lost[0]!.message, /nothing was heard/)
  },
)

t.test('an end that has not begun to speak is given half a minute', async t => {
  const [end] = ends()
  const { world, lost } = nodeAt(end, 'writer')
  for (let ms = 0; ms < 30_000; ms += 500) world.advance(500)
  t.same(lost, [])
  world.advance(500)
  t.match(lost[0]!.message, /nothing was heard for 30000 ms/)
})

t.test(
  'another form, a kind that is not served, and a malformed message end the link and reach no actor',
  async t => {
    const hello = pack([LINK_FORM, 'front', '1.0.0'])
    const frame = (...parts: Uint8Array[]) =>
      Buffer.concat([frameHead(Buffer.concat(parts).length), ...parts])
    const cases: Record<string, Uint8Array> = {
      'another form': frame(pack([LINK_FORM + 1, 'front', '1.0.0'])),
      'no hello': frame(pack([0, 'probe', ['a'], { kind: 'm', n: 1 }])),
      'a kind that is not served': frame(hello, pack([0, 'log', ['a'], { kind: 'm', n: 1 }])),
      'a message out of form': frame(hello, pack([1, 'probe', 'a', { n: 1 }])),
      'an unknown entry': frame(hello, pack([9])),
      'a number for an entry': frame(hello, pack(9)),
      'ids that are none': frame(hello, pack([0, 'probe', 'a', { kind: 'm', n: 1 }])),
      'an ask without a deadline': frame(hello, pack([2, 'probe', 'a', 1, 0, { kind: 'm' }])),
      'a frame that is too long': frameHead(2 ** 31),
      'an array that is said to be long': frame(hello, Buffer.from('ddffffffff', 'hex')),
      'half of a value': frame(hello, pack([0, 'probe', ['a'], { kind: 'm', n: 1 }]).subarray(0, 9)),
      noise: frame(hello, randomBytes(1_000)),
    }
    for (const [name, bytes] of Object.entries(cases)) {
      const [one, other] = ends()
      const serves = new Map([
        ['probe', (message: unknown) => (message as Message | undefined)?.kind === 'm'],
      ])
      const writer = nodeAt(other, 'writer', { serves })
      const heard = listen(writer)
      one.write(bytes)
      for (let round = 0; round < 3; round++) await writer.world.settle()
      t.same([heard, writer.lost.length], [[], 1], `${name}: ${writer.lost[0]?.message}`)
      t.equal(writer.lost[0]!.by === 'other form', name === 'another form')
      t.equal(writer.system.ref('probe', 'a').tell({ kind: 'm', n: 2 }), 'accepted', 'its own actors go on')
      await writer.world.settle()
      t.same(heard, ['a 2'])
    }
  },
)

t.test(
  'what comes behind a word waits until that is heeded, in order, and nothing is read meanwhile',
  async t => {
    const heeded: (() => void)[] = []
    const nodes = linkedNodes({}, { onMessage: () => new Promise<void>(resolve => heeded.push(resolve)) })
    const heard = listen(nodes.writer)
    const probe = probeOf(nodes.front, 'a')
    await nodes.settle()
    nodes.front.link.send('one')
    probe.tell({ kind: 'm', n: 1 })
    nodes.front.link.send('two')
    probe.tell({ kind: 'm', n: 2 })
    await nodes.settle()
    probe.tell({ kind: 'm', n: 3 })
    await nodes.settle()
    t.same([heard, heeded.length, nodes.writer.end.isPaused()], [[], 1, true])
    heeded[0]!()
    await nodes.settle()
    t.same([heard, heeded.length], [['a 1'], 2])
    heeded[1]!()
    await nodes.settle()
    t.same(heard, ['a 1', 'a 2', 'a 3'])
    t.same(nodes.writer.lost, [])
  },
)

t.test('a word that may wait goes with the next message, or by itself some milliseconds later', async t => {
  const said: unknown[] = []
  const nodes = linkedNodes(
    {},
    {
      onMessage: word => {
        said.push(word)
        return undefined
      },
    },
  )
  const heard = listen(nodes.writer)
  await nodes.settle()
  nodes.front.link.sendSoon('first')
  await nodes.settle()
  t.same(said, [])
  nodes.front.link.sendSoon('second')
  probeOf(nodes.front, 'a').tell({ kind: 'm', n: 1 })
  await nodes.settle()
  t.same([said, heard], [['first', 'second'], ['a 1']])
  nodes.front.link.sendSoon('third')
  await nodes.advance(100)
  t.same(said, ['first', 'second', 'third'])
})

t.test('a word that can not be heeded ends the link', async t => {
  const nodes = linkedNodes({}, { onMessage: () => Promise.reject(new Error('the copy is gone')) })
  await nodes.settle()
  nodes.front.link.send('one')
  await nodes.settle()
  t.match(nodes.writer.lost, [{ code: 'STORE_UNAVAILABLE', message: /the copy is gone/ }])
})

/** The drill's command line, what it does with commands, and its bookkeeping of messages. The drills: test/flows/nodes-drill and nodes-drill-network. */

import t from 'tap'
import { InboxLedger } from '../../scripts/drill/inbox-ledger.ts'
import { runProgram, startedProgram } from '../support/programs.ts'

const NODES = [
  ...['--node', 'one=http://127.0.0.1:1,http://127.0.0.1:2'],
  ...['--node', 'two=http://127.0.0.1:3,http://127.0.0.1:4,127.0.0.1:5'],
]
const CODES = '{"+15550100":"424242","+15550101":"535353"}'

function drill(args: readonly string[], identifiers = CODES) {
  return runProgram(process.execPath, [startedProgram('scripts/drill'), ...args], {
    environment: { CALLSIGN_TEST_IDENTIFIERS: identifiers },
  })
}

t.test('wrong usage is refused with a sentence that quotes no code', async t => {
  const wrong: readonly (readonly [RegExp, readonly string[], string?])[] = [
    [/a drill needs two nodes or more/, NODES.slice(0, 2)],
    [/--node three is not NAME=URL/, [...NODES, '--node', 'three']],
    [
      /http:\/\/127\.0\.0\.1:1 is given twice/,
      [...NODES, '--node', 'x=http://127.0.0.1:1,http://127.0.0.1:9'],
    ],
    [/is not an http or https address without a path/, ['--node', 'x=http://h/path,http://h:1', ...NODES]],
    [
      /--drills: fire is none of writer, other, stop, pause, slow, cut-in, cut-out, postgres, promote/,
      [...NODES, '--drills', 'writer,fire'],
    ],
    [/--slow needs --mend, which undoes it/, [...NODES, '--slow', 'true']],
    [/--pause needs --resume, which undoes it/, [...NODES, '--pause', 'true', '--mend', 'true']],
    [/--back-within soon is not a number of seconds/, [...NODES, '--back-within', 'soon']],
    [/CALLSIGN_TEST_IDENTIFIERS is missing/, NODES, ''],
    [/CALLSIGN_TEST_IDENTIFIERS is not a JSON object/, NODES, '{"+15550100":"424242"'],
    [/has to have two identifiers or more/, NODES, '{"+15550100":"424242"}'],
  ]
  for (const [sentence, args, identifiers] of wrong) {
    const { code, stdout, stderr } = await drill(args, identifiers)
    t.equal(code, 2, stderr)
    t.match(stderr, sentence)
    t.notMatch(stdout + stderr, /424242|535353/)
  }
})

t.test('nodes that do not answer are named', async t => {
  const { code, stderr } = await drill(NODES)
  t.equal(code, 2)
  t.match(stderr, /^drill: (one|two) does not answer at http:\/\/127\.0\.0\.1:\d: .*\n$/)
})

t.test('a message that comes after its acknowledgement, or never, is found', async t => {
  const inbox = new InboxLedger()
  inbox.promise('first')
  inbox.promise('second')
  const arrival = inbox.arrival('first')
  inbox.receive('first')
  await arrival
  await inbox.arrival('first')
  inbox.receive('first')
  t.same(inbox.again, [], 'it may be repeated until its ACK has a receipt')
  inbox.settle('first')
  t.same(inbox.missing, ['second'])
  inbox.receive('first')
  t.same(inbox.again, ['first'])
  t.same(inbox.counts, { promised: 2, settled: 1 })
})

/**
 * Another language's gRPC registers keys, with nothing from us but `proto/kt_service.proto` (`test/strangers/python`).
 * Skipped where Debian's Python packages are not installed.
 */

import { join } from 'node:path'
import t from 'tap'
import { verifyLookup } from '../strangers/verifier.ts'
import { type LiveLog, lookUp, startLog } from '../support/live-log.ts'
import { runProgram, skipWithout } from '../support/programs.ts'
import { freshPublicKey } from '../support/server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const PYTHON = '/usr/bin/python3'
const PROTOC = '/usr/bin/protoc'
const PLUGIN = '/usr/bin/grpc_python_plugin'
const skip = skipWithout(
  [PYTHON, PROTOC, PLUGIN, '/usr/lib/python3/dist-packages/grpc'],
  'python3-grpcio protobuf-compiler protobuf-compiler-grpc',
)

interface Question {
  readonly userID: string
  readonly deviceID: string
  readonly publicKey: string
  readonly token?: string
}

interface Answer {
  readonly index?: string
  readonly vrfHash?: string
  readonly code?: string
  readonly details?: string
}

type AskPython = (log: LiveLog, questions: readonly Question[]) => Promise<Answer[]>

/** Generates the Python classes into `folder`. */
async function generateStubs(folder: string): Promise<AskPython> {
  const proto = join(PROJECT_ROOT, 'proto')
  const generated = await runProgram(PROTOC, [
    `--proto_path=${proto}`,
    `--plugin=protoc-gen-grpc_python=${PLUGIN}`,
    `--python_out=${folder}`,
    `--grpc_python_out=${folder}`,
    join(proto, 'kt_service.proto'),
  ])
  if (generated.code !== 0) throw new Error(`protoc: ${generated.stderr}`)
  const script = join(PROJECT_ROOT, 'test/strangers/python/register.py')
  const environment = { PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' }
  return async (log, questions) => {
    const input = questions.map(question => `${JSON.stringify(question)}\n`).join('')
    const { code, stdout, stderr } = await runProgram(PYTHON, [script, log.grpc], { input, environment })
    if (code !== 0) throw new Error(`register.py: ${stderr}`)
    return stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
  }
}

const UINT64_MAX = `${2n ** 64n - 1n}`

t.test('the gRPC of Python', { skip }, async t => {
  const folder = t.testdir({ stubs: {}, open: {}, guarded: {} })
  const askPython = await generateStubs(join(folder, 'stubs'))
  const log = await startLog(t, join(folder, 'open'))

  t.test('registers keys that verify, ids up to the largest uint64', async t => {
    const ids = [
      ['0', '0'],
      ['1', '2'],
      [UINT64_MAX, UINT64_MAX],
    ] as const
    const questions = ids.map(([userID, deviceID]) => ({ userID, deviceID, publicKey: freshPublicKey() }))
    const answers = await askPython(log, questions)
    const results = await lookUp(
      log.http,
      answers.map(({ vrfHash }) => vrfHash!),
    )
    const verified = questions.map(({ userID, deviceID, publicKey }, at) => {
      const expected = { userId: BigInt(userID), deviceId: BigInt(deviceID), publicKey }
      return `${verifyLookup(log.keys, expected, results[at]!).index}`
    })
    t.same(
      verified,
      answers.map(({ index }) => index),
    )
    t.equal(new Set(verified).size, 3)
  })

  t.test('gets the same index for the same key', async t => {
    const question = { userID: '77', deviceID: '1', publicKey: freshPublicKey() }
    const [first, second] = await askPython(log, [question, question])
    t.match(first, { index: /^\d+$/ })
    t.same(second, first)
  })

  t.test('hears INVALID_ARGUMENT for a key that is not canonical base64', async t => {
    const publicKeys = ['', 'AAA', 'AAB=', 'AA==\n', 'A-_A', ' AAAA', 'A'.repeat(1028)]
    const questions = publicKeys.map(publicKey => ({ userID: '5', deviceID: '5', publicKey }))
    const answers = await askPython(log, questions)
    t.same(
      answers.map(({ code }) => code),
      publicKeys.map(() => 'INVALID_ARGUMENT'),
    )
    t.ok(
      answers.every(({ details }) => details !== undefined && details.length > 10),
      'each is told why',
    )
  })

  t.test('needs the token of a server that has one', async t => {
    const environment = { CALLSIGN_GRPC_TOKEN: 'a-token-for-this-test-only' }
    const guarded = await startLog(t, join(folder, 'guarded'), environment)
    const question = { userID: '1', deviceID: '1', publicKey: freshPublicKey() }
    const [without, wrong, right] = await askPython(guarded, [
      question,
      { ...question, token: 'another' },
      { ...question, token: environment.CALLSIGN_GRPC_TOKEN },
    ])
    t.match([without, wrong], [{ code: 'UNAUTHENTICATED' }, { code: 'UNAUTHENTICATED' }])
    t.match(right, { index: '0' })
  })
})

/**
 * Go's own `sumdb/note` and `sumdb/tlog`, which guard the Go module checksum database, open our checkpoints and check
 * our proofs, tiles and entries (`test/strangers/go`). Skipped where Debian's Go and its packages are not installed.
 */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type LiveLog, lookUp, type RegisteredKey, registerUsers, startLog } from '../support/live-log.ts'
import { type Outcome, runProgram, skipWithout } from '../support/programs.ts'
import { PROJECT_ROOT, readVectors } from '../support/vectors.ts'

// Debian's Go brings its standard library compiled, so that building takes two seconds; another may need a minute.
const GO = '/usr/bin/go'
const GO_SOURCES = '/usr/share/gocode'
const skip = skipWithout(
  [GO, join(GO_SOURCES, 'src/golang.org/x/mod/sumdb/tlog')],
  'golang-go golang-golang-x-mod-dev',
)

interface Lookup {
  readonly entry: string
  readonly proof: string
}

interface Task {
  readonly vkey: string
  readonly checkpoints?: readonly string[]
  readonly url?: string
  readonly lookups?: readonly Lookup[]
}

/** Compiles the Go program offline, against the sources of Debian's packages. */
async function buildStranger(folder: string): Promise<(task: Task) => Promise<Outcome>> {
  const program = join(folder, 'stranger')
  const source = join(PROJECT_ROOT, 'test/strangers/go/main.go')
  const environment = {
    GO111MODULE: 'off',
    GOPATH: GO_SOURCES,
    GOCACHE: join(folder, 'cache'),
    GOTOOLCHAIN: 'local',
    HOME: folder,
  }
  const built = await runProgram(GO, ['build', '-o', program, source], { environment })
  if (built.code !== 0) throw new Error(`go build: ${built.stderr}`)
  return task => runProgram(program, [], { input: JSON.stringify(task) })
}

/** 700 keys, and the checkpoints that were served at sizes 0, 1, 256, 300 and 700. */
async function registerLog(log: LiveLog): Promise<{ registered: RegisteredKey[]; checkpoints: string[] }> {
  const registered: RegisteredKey[] = []
  const checkpoints = [await checkpointText(log.http)]
  for (const size of [1, 256, 300, 700]) {
    const first = registered.length
    registered.push(...(await registerUsers(log.client, first, size - first)))
    checkpoints.push(await checkpointText(log.http))
  }
  return { registered, checkpoints }
}

async function checkpointText(http: string): Promise<string> {
  return (await fetch(`${http}/checkpoint`)).text()
}

async function lookUpAll(http: string, registered: readonly RegisteredKey[]): Promise<Lookup[]> {
  const lookups: Lookup[] = []
  for (let first = 0; first < registered.length; first += 64) {
    const hashes = registered.slice(first, first + 64).map(({ vrfHash }) => vrfHash)
    const results = await lookUp(http, hashes)
    for (const { vrfHash, publicKey, proof } of results) {
      lookups.push({ entry: `${vrfHash}\n${publicKey}\n`, proof })
    }
  }
  return lookups
}

/** A server in front of the log that changes one bit of what one path answers. */
async function startForger(t: Test, http: string, forgedPath: string): Promise<string> {
  const server = createServer(async (request, response) => {
    const bytes = Buffer.from(await (await fetch(http + request.url)).arrayBuffer())
    if (request.url === forgedPath) bytes[100]! ^= 1
    response.end(bytes)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('the checksum database of Go', { skip }, async t => {
  const folder = t.testdir({ go: {}, log: {} })
  const askStranger = await buildStranger(join(folder, 'go'))
  const log = await startLog(t, join(folder, 'log'))
  const { vkey, http } = log
  const { registered, checkpoints } = await registerLog(log)
  const lookups = await lookUpAll(http, registered)

  t.test('opens the sixteen golden checkpoints', async t => {
    const golden = readVectors<{ vkey: string; checkpoints: string[] }>('tessera-golden-log')
    const { code, stdout, stderr } = await askStranger({ vkey: golden.vkey, checkpoints: golden.checkpoints })
    t.equal(code, 0, stderr)
    t.same(
      JSON.parse(stdout).sizes,
      golden.checkpoints.map((_, size) => size),
    )
  })

  t.test('accepts our checkpoints, inclusion proofs, tree proofs, tiles and entries', async t => {
    const { code, stdout, stderr } = await askStranger({ vkey, url: http, checkpoints, lookups })
    t.equal(code, 0, stderr)
    const found = JSON.parse(stdout)
    t.match(found, {
      sizes: [0, 1, 256, 300, 700],
      included: 700,
      sameProofs: 700,
      consistent: 5,
      entries: 700,
    })
    t.ok(found.tilesLoaded >= 4, `${found.tilesLoaded} tiles were authenticated`)
  })

  t.test('refuses a checkpoint under the key of another log', async t => {
    const other = readVectors<{ vkey: string }>('tessera-golden-log').vkey
    const { code, stderr } = await askStranger({ vkey: other, checkpoints })
    t.equal(code, 1)
    t.match(stderr, /note has no verifiable signatures/)
  })

  t.test('refuses the proof of another entry', async t => {
    const swapped = [{ entry: lookups[7]!.entry, proof: lookups[8]!.proof }]
    const { code, stderr } = await askStranger({ vkey, lookups: swapped })
    t.equal(code, 1)
    t.match(stderr, /check record \d+: .*invalid/)
  })

  t.test('refuses a tile with one bit changed on the way', async t => {
    const url = await startForger(t, http, '/tile/0/002.p/188')
    const { code, stderr } = await askStranger({ vkey, url, checkpoints })
    t.equal(code, 1)
    t.match(stderr, /inconsistent tile/)
  })

  t.test('refuses an entry with one bit changed on the way', async t => {
    const url = await startForger(t, http, '/tile/entries/001')
    const { code, stderr } = await askStranger({ vkey, url, checkpoints })
    t.equal(code, 1)
    t.match(stderr, /is not what its tile says/)
  })
})

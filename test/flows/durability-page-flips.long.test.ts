/**
 * A page of random bytes anywhere in a store with real content: fsck and the start end in a sentence or a clean report,
 * and no server is ended by a signal. `CALLSIGN_PAGE_FLIPS` sets the number of copies (8), on every second of them a
 * server is started; `CALLSIGN_SEED` replays them.
 */

import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { meetPeople, type Person, settingsFor, startCall } from '../support/call-people.ts'
import { runScript } from '../support/commands.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { type RunningServer, startServer } from '../support/server.ts'

const FLIPS = Number(process.env.CALLSIGN_PAGE_FLIPS ?? 8)
const FLIPS_PER_SERVER = 2
const PAGE_BYTES = 4_096
const PEOPLE = 12
const environment = settingsFor(PEOPLE)

t.test(`${FLIPS} damaged pages end in a sentence or a clean report, and no server in a signal`, async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const folder = t.testdir()
  const dataFolder = join(folder, 'data')
  const people = await fill(dataFolder)
  t.same(await faultsOf(dataFolder), [], 'whole before')
  let found = 0
  for (let flip = 0; flip < FLIPS; flip++) {
    const copy = join(folder, 'copy')
    rmSync(copy, { recursive: true, force: true })
    cpSync(dataFolder, copy, { recursive: true })
    const page = flipPage(join(copy, 'store', 'data.mdb'), random)
    const at = `seed ${seed}, copy ${flip}, page ${page}`
    const faults = await faultsOf(copy)
    found += Math.min(1, faults.length)
    t.notMatch(faults.join(), /ended the process/, at)
    if (flip % FLIPS_PER_SERVER === 0) t.match(await endOf(copy, people), /^(0|1: callsign: .+)$/, at)
  }
  t.comment(`${found} of ${FLIPS} found by fsck; the others were free, or in the middle of a long row`)
  t.ok(found > 0)
})

/** People, contacts, calls and messages waiting for devices. */
async function fill(dataFolder: string): Promise<Person[]> {
  const server = await startServer({ dataFolder, environment })
  const people = await meetPeople(server.http, PEOPLE)
  const [host, ...others] = people
  for (const other of others) {
    const { body } = await startCall(host!, [other])
    await host!.app.get(200, 'POST /app/api/call/end', { callId: body.callId })
  }
  await server.end()
  return people
}

function flipPage(path: string, random: () => number): number {
  const bytes = readFileSync(path)
  const page = Math.floor((random() * bytes.length) / PAGE_BYTES)
  for (let at = page * PAGE_BYTES; at < (page + 1) * PAGE_BYTES; at++) bytes[at] = random() * 256
  writeFileSync(path, bytes)
  return page
}

/** Faults that fsck finds, or why it can't look. */
async function faultsOf(dataFolder: string): Promise<string[]> {
  const { code, lines, stderr } = await runScript('fsck', ['--data-dir', dataFolder])
  if (code !== 0 && code !== 1) throw new Error(`fsck ended with ${code}: ${stderr}`)
  return lines.filter(({ ok }) => ok === false).map(({ detail }) => String(detail))
}

/** The exit code of a server on which everybody did something, and if it is not 0, its last words. */
async function endOf(dataFolder: string, people: readonly Person[]): Promise<string> {
  let server: RunningServer
  try {
    server = await startServer({ dataFolder, environment })
  } catch (error) {
    const [, code, stderr = ''] = /^the server ended with (\w+): (.*)$/s.exec((error as Error).message) ?? []
    return `${code}: ${stderr.trim().split('\n').at(-1)}`
  }
  // Requests that rest on a damaged row are refused; the rest succeed.
  await Promise.allSettled(people.map(person => use(server.http, person)))
  const code = await server.end()
  return code === 0 ? '0' : `${code}: ${server.stderr().trim().split('\n').at(-1)}`
}

async function use(http: string, person: Person): Promise<void> {
  const { app } = person
  app.http = http
  for (const read of ['user', 'friend', 'device', 'call/history', 'friend-request/incoming']) {
    await app.outcome(`GET /app/api/${read}`)
  }
  await app.outcome('PUT /app/api/user', { displayName: 'Another name' })
  await startCall(person, [person])
}

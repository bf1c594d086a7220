/**
 * The programs of the pages about the SDK, as a reader runs them against a development server, and their parts of programs, which
 * compile as strictly as this project.
 */

import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { runProgram } from '../support/programs.ts'
import { startServer } from '../support/server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { blocksOf } from '../support/your-users.ts'

/** In docs/: build/sign-in.md and the pages that go on from it. */
const PAGES = [
  'build/sign-in.md',
  'build/contacts.md',
  'build/calls.md',
  'build/media.md',
  'build/push.md',
  'build/backend.md',
  'build/react-native.md',
]
const THIS = 'test/flows/build-pages.test.ts'
const blocks = PAGES.flatMap(page =>
  blocksOf(page)
    .filter(({ test }) => test === THIS)
    .map(({ language, text }) => ({ page, language, text })),
)
const textsIn = (language: string) => blocks.filter(block => block.language === language)

/** The output of each program, the numbers of a run apart. */
const PRINTED: Readonly<Record<string, RegExp>> = {
  'sign-in.mjs': /^a code is on its way to E•••@example\.org\nOTP_INVALID\ntrue Eve Example\n$/i,
  'devices.mjs': /^true\n2 devices\n$/,
  'contacts.mjs': /Bob: It is Bob\nAnn is a contact\nMy brother Bob\ntrue \d{5} \d{5}\n\[\]\n$/,
  'group-call.mjs': /^Cat: removed\nepoch 3\n.*'outgoing', isGroup: true, status: 'ended'/s,
  'push.mjs': /^\{ show: 'nothing' \}\n$/,
}

t.test('the programs of the pages run', async t => {
  const [people, ...programs] = textsIn('js').map(({ text }) => text)
  const folder = readersFolder(t.testdir())
  const data = join(folder, 'data')
  mkdirSync(data)
  writeFileSync(join(data, 'people.mjs'), people!)
  const server = await startServer({ dataFolder: join(folder, 'server') })
  t.teardown(() => server.end())
  const names = programs.map(program => /^\/\/ ([\w-]+\.mjs)/.exec(program)?.[1] ?? '')
  t.same(names, Object.keys(PRINTED))
  for (const [at, name] of names.entries()) {
    writeFileSync(join(data, name), programs[at]!)
    const environment = { PATH: process.env.PATH!, CALLSIGN_URL: server.http }
    const { code, stdout, stderr } = await runProgram(process.execPath, [join(data, name)], { environment })
    t.equal(code, 0, `${name} ends well ${stderr}`)
    t.match(stdout, PRINTED[name]!, name)
  }
})

/** The parts of an app that the pages' excerpts use and leave to it. */
const AROUND = `
// Packages for phones, which are not among ours.
declare module '@livekit/react-native' {
  const AudioSession: { startAudioSession(): Promise<void> }
  const RNE2EEManager: any
  class RNKeyProvider {
    constructor(options: object)
    setKey(identity: string, key: string | Uint8Array, keyIndex: number): Promise<void>
    setSifTrailer(trailer: Uint8Array): Promise<void>
  }
}
declare module 'react-native-passkey'
declare const me: import('@callsign/sdk/app').Callsign
declare const call: import('@callsign/sdk/app').Call
declare const media: import('@callsign/sdk/app/media').CallMedia
declare const banner: HTMLElement
declare function askPerson(question: string): Promise<boolean>
declare function showSignIn(why?: string): void
declare function showContacts(): void
declare function showApproval(code: string): void
declare function show(code: string, until: string): void
declare function showQuestion(
  who: string,
  network: string | undefined,
  code: string,
  answer: (isApproved: boolean) => Promise<void>,
): void
declare function hideQuestion(): void
declare function showDialog(
  proof: import('@callsign/sdk/app').ProofQuestion,
  acts: {
    onPasskey(): Promise<void>
    onSend(): Promise<unknown>
    onCode(code: string): Promise<void>
    onProvider(idToken: string): Promise<void>
    onCancel(): void
  },
): void
declare function nameOf(userId: string): string
declare function labelOf(feed: string): HTMLElement
declare function videoOf(feed: string): HTMLVideoElement
declare function tileOf(identity: string, name: string): HTMLElement
declare function removeTile(feed: string): void
declare function ring(feed: string | undefined): void
`

t.test('the parts of programs on the pages compile', async t => {
  const folder = t.testdir({ 'around.d.ts': AROUND })
  const parts = textsIn('ts')
  t.ok(parts.length > 12)
  for (const [at, { page, text }] of parts.entries()) {
    // A module, also where nothing is imported.
    writeFileSync(join(folder, `${basename(page, '.md')}-${at}.ts`), `${text}\nexport {}\n`)
  }
  const ours = JSON.parse(readFileSync(join(PROJECT_ROOT, 'tsconfig.json'), 'utf8')).compilerOptions
  // An excerpt uses little of its own names.
  const ofExcerpts = {
    noUnusedLocals: false,
    noUnusedParameters: false,
    lib: ['es2023', 'dom', 'dom.iterable'],
  }
  const ofOnePass = {
    composite: false,
    tsBuildInfoFile: undefined,
    noEmit: true,
    types: [],
    rootDir: undefined,
  }
  const compilerOptions = { ...ours, ...ofExcerpts, ...ofOnePass }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  const tsc = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout } = await runProgram(process.execPath, [tsc, '-p', folder])
  t.equal(stdout, '')
})

t.test('the command of the page on media copies a worker that needs nothing else', async t => {
  const [{ text } = { text: '' }] = textsIn('sh')
  const folder = readersFolder(t.testdir({ public: {} }))
  const script = `unset NODE_OPTIONS\ncd '${folder}'\n${text}`
  const PATH = `${join(process.execPath, '..')}:/usr/bin:/bin`
  const { code, stderr } = await runProgram('/bin/bash', ['--norc', '-c', script], { environment: { PATH } })
  t.equal(code, 0, stderr)
  const worker = join(folder, 'public/callsign-worker.js')
  t.ok(existsSync(worker))
  t.notMatch(readFileSync(worker, 'utf8'), /\bimport\b[^(]*\bfrom\b/)
})

/** A folder in which the SDK can be imported, as in the project's own. */
function readersFolder(folder: string): string {
  for (const name of ['dist', 'node_modules', 'package.json'])
    symlinkSync(join(PROJECT_ROOT, name), join(folder, name))
  return folder
}

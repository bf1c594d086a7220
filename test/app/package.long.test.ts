/** The package from `npm run pack-sdk`: the SDK alone, which an app can import as it is, with types. */

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import t, { type Test } from 'tap'
import { installPackedSdk } from '../support/packed-sdk.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const run = promisify(execFile)
const TSC = join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc')
const HOOKS = ['useCall', 'useCalls', 'useCallsign', 'useContacts', 'useDevices']
const SAMPLE = `import { type Call, Callsign, CallsignError, memoryStorage } from '@callsign/sdk/app'
import { developmentPins } from '@callsign/sdk/app/development'
import { type CallMedia, joinMedia } from '@callsign/sdk/app/media'
import { handleCallPushes } from '@callsign/sdk/app/service-worker'
import { subscribeToWebPush, type WebPushState } from '@callsign/sdk/app/web-push'
import { LogClient, type LookupOutcome } from '@callsign/sdk/client'
export const keyOf = (outcome: LookupOutcome) => (outcome.kind === 'verified' ? outcome.publicKey : undefined)
export const client: (url: string) => LogClient = url => new LogClient({ url, vkey: '', vrfPublicKey: '' })
export async function ring(server: string): Promise<Call> {
  const me = new Callsign({ server, pins: await developmentPins(server), storage: memoryStorage() })
  me.on('friend_request', ({ displayName }) => displayName.length)
  me.on('error', (error: CallsignError) => error.code)
  const user = await me.signIn('ann@example.org', ({ sentTo, error }) => sentTo + error?.code)
  return me.call([user.userId], { video: true })
}
export const show = () => handleCallPushes({ url: '/' })
export async function subscribe(me: Callsign): Promise<WebPushState> {
  return subscribeToWebPush(me, await navigator.serviceWorker.ready)
}
export function attach(me: Callsign, call: Call): CallMedia {
  const newWorker = () => new Worker(new URL('@callsign/sdk/app/media-worker'), { type: 'module' })
  const media = joinMedia(call, { codec: 'h264', relay: () => me.relay(), newWorker })
  media.on('participant', ({ userId, camera }) => new MediaStream(camera ? [camera.track] : []).id + userId)
  return media
}
`

async function newApp(t: Test) {
  const app = t.testdir()
  return { app, ...(await installPackedSdk(app)) }
}

t.test('the packed SDK has types and runs, with the packages that it names and nothing else', async t => {
  const { app, folder, tarball } = await newApp(t)
  t.match(tarball, /callsign-sdk-[\d.]+\.tgz$/)
  t.same(readdirSync(folder).sort(), ['LICENSE', 'README.md', 'dist', 'package.json', 'src'])

  const program = `
    import { Callsign } from '@callsign/sdk/app'
    import { joinMedia } from '@callsign/sdk/app/media'
    import { LogClient } from '@callsign/sdk/client'
    import * as hooks from '@callsign/sdk/react'
    console.log(Callsign.name, LogClient.name, joinMedia.name, ...Object.keys(hooks))`
  writeFileSync(join(app, 'program.mjs'), program)
  for (const conditions of [[], ['--conditions=browser']]) {
    const { stdout } = await run(process.execPath, [...conditions, 'program.mjs'], { cwd: app })
    t.equal(stdout, `Callsign LogClient joinMedia ${HOOKS.join(' ')}\n`)
  }
  writeFileSync(join(app, 'sample.mts'), SAMPLE)
  const [, component] = /^```tsx\n([\s\S]+?)^```$/m.exec(readFileSync(join(folder, 'README.md'), 'utf8'))!
  writeFileSync(join(app, 'App.tsx'), component!)
  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['node16', 'node16'],
    ['esnext', 'bundler'],
  ]) {
    const compilerOptions = {
      module,
      moduleResolution,
      target: 'es2022',
      jsx: 'react-jsx',
      lib: ['es2022', 'dom'],
      types: [],
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noEmit: true,
    }
    writeFileSync(
      join(app, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['sample.mts', 'App.tsx'] }),
    )
    const outcome = await run(process.execPath, [TSC], { cwd: app }).catch(({ stdout }) => ({ stdout }))
    t.equal(outcome.stdout, '', `with ${moduleResolution}`)
  }
})

t.test('the packed SDK is found sound by publint and by Are the types wrong?', async t => {
  const { folder, tarball } = await newApp(t)
  const { messages } = await publint({ pkgDir: folder, pack: false })
  t.same(
    messages.map(({ code, path }) => [code, path]),
    [],
  )
  const packed = createPackageFromTarballData(new Uint8Array(readFileSync(tarball)))
  const analysis = await checkPackage(packed)
  const problems = analysis.types === false ? [{ kind: 'NoTypes' }] : analysis.problems
  // It is an ES module, and resolved by `exports`, which the oldest resolution does not know.
  const isKnown = (problem: object) =>
    'resolutionKind' in problem && ['node10', 'node16-cjs'].includes(String(problem.resolutionKind))
  t.same(
    problems.filter(problem => !isKnown(problem)),
    [],
  )
})

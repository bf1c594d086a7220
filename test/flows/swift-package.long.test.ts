/**
 * The Swift package, by its own tests: the vectors, the corpus and the stories that TypeScript and Kotlin run, and calls with a
 * TypeScript participant at the built server. Skipped where no root with a toolchain can be made.
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { builtProgram, runProgram } from '../support/programs.ts'
import { runSwift, swiftSkip } from '../support/swift-root.ts'
import { makeAppleModule, makeStubs, swiftFiles, typeCheck, writeBlocks } from '../support/swift-sources.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const FRESH = 'swift/.build/fresh'
const OUTPUT_SHOWN = 8_000

const skip = await swiftSkip()

/** Fresh cases or stories, with the verdicts of the TypeScript client: the path of their file in the root. */
async function fresh(program: string, cases: number): Promise<string> {
  const environment = { CALLSIGN_CORPUS_CASES: `${cases}` }
  const { stdout } = await runProgram(process.execPath, [builtProgram(`test/support/${program}`)], {
    environment,
  })
  mkdirSync(join(PROJECT_ROOT, FRESH), { recursive: true })
  writeFileSync(join(PROJECT_ROOT, FRESH, program), stdout)
  return `/callsign/${FRESH}/${program}`
}

t.test('the Swift package builds without a warning, and its tests pass', { skip }, async t => {
  const built = await runSwift(['build', '--build-tests'])
  if (built.code !== 0) {
    t.fail('it does not build', { output: built.stdout.slice(-OUTPUT_SHOWN) })
    return
  }
  t.notMatch(built.stdout, /^\/callsign\/swift\/.*warning:/m)

  const { code, stdout, stderr } = await runSwift(['test', '--skip-build'], {
    CALLSIGN_CORPUS: await fresh('verdict-corpus', 3_000),
    CALLSIGN_STORIES: await fresh('verdict-stories', 100),
  })
  const output = stdout + stderr
  for (const [, name, end] of output.matchAll(/^Test Case '(.*?)' (passed|failed|skipped) /gm)) {
    if (end === 'skipped') t.pass(name!, { skip: true })
    else t.equal(end, 'passed', name!)
  }
  if (code !== 0) t.fail('a test failed', { output: output.slice(-OUTPUT_SHOWN) })
})

t.test("what only Apple's systems compile fits their declarations", { skip }, async t => {
  t.equal(await makeStubs(), '')
  t.equal(await typeCheck(swiftFiles('swift/Sources/CallsignCrypto'), 'CallsignCrypto'), '', 'CallsignCrypto')
  t.equal(await makeAppleModule(), '', 'CallsignApp')
  t.equal(await typeCheck(swiftFiles('examples/ios/Calls')), '', 'examples/ios')
  const around = swiftFiles('swift/Tests/AppleStubs/Around')
  const blocks = writeBlocks()
  for (const { page, file } of blocks) t.equal(await typeCheck([file, ...around]), '', `${page}: ${file}`)
  const pages = blocks.map(({ page }) => page)
  for (const page of ['docs/build/push.md', 'docs/build/react-native.md']) t.ok(pages.includes(page), page)
  t.notOk(pages.includes('docs/build/ios.md'), 'all Swift of docs/build/ios.md is out of the example')
})

t.test("the iOS example's models build, and its tests pass", { skip }, async t => {
  const paths = ['--package-path', '../examples/ios', '--scratch-path', '.build/ios']
  // Without the other half of the seam, which has its own tests.
  const { code, stdout, stderr } = await runSwift(['test', ...paths], { CALLSIGN_SWIFT_CRYPTO: '' })
  t.equal(code, 0, { output: (stdout + stderr).slice(-OUTPUT_SHOWN) })
  t.match(stdout + stderr, /Executed [1-9]\d* tests, with 0 failures/)
})

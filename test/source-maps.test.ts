/** Stacks name the sources where maps lie beside the compiled files. */

import { join } from 'node:path'
import t from 'tap'
import { builtProgram, runProgram } from './support/programs.ts'

/** One line of code whose fourth column came from the third line of another file. */
const MAP = JSON.stringify({ version: 3, sources: ['../src/thing.ts'], names: [], mappings: 'AAEI' })

async function stackOf(folder: string): Promise<string> {
  const script = `
    import ${JSON.stringify(builtProgram('src/source-maps'))}
    const { fail } = await import(${JSON.stringify(join(folder, 'dist/thing.js'))})
    try { fail() } catch (error) { console.log(error.stack) }`
  const { stdout, stderr } = await runProgram(process.execPath, ['--input-type=module', '-e', script])
  return stdout + stderr
}

const THING = `export function fail() { throw new TypeError('it is\\nbroken') }\n`

t.test('a place in a file with a map is the one in its source', async t => {
  const folder = t.testdir({ dist: { 'thing.js': THING, 'thing.js.map': MAP } })
  const [first, second, place] = (await stackOf(folder)).split('\n')
  t.same([first, second], ['TypeError: it is', 'broken'])
  t.equal(place, `    at fail (${join(folder, 'src/thing.ts')}:3:5)`)
})

t.test('without a map, or with a broken one, it is the place that Node names', async t => {
  for (const others of [{}, { 'thing.js.map': '{' }]) {
    const folder = t.testdir({ dist: { 'thing.js': THING, ...others } })
    t.match((await stackOf(folder)).split('\n')[2], /^ {4}at fail \(file:.*\/dist\/thing\.js:1:\d+\)$/)
  }
})

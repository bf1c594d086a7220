/** The module as apps ship it: small, without anything of Node, and at home where little of the platform is there. */

import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { type Bundle, bundleClient, type Client } from '../support/client-builds.ts'
import { LyingLog } from '../support/lying-log.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const log = new LyingLog()
log.grow(3)
log.register(1n, 1n)
log.grow(40)

/** Loads a bundle into a world of only the language itself and `globals`. */
function load({ code }: Bundle, globals: object): Client {
  const context = createContext(globals)
  runInContext(Buffer.from(code).toString(), context)
  return runInContext('callsign', context)
}

t.test('a browser downloads less than 30 kB', async t => {
  const { code, inputs } = await bundleClient('esm')
  const bytes = gzipSync(code, { level: 9 }).length
  t.ok(bytes < 30_000, `${bytes} bytes`)
  t.comment(`${code.length} bytes, ${bytes} with gzip`)
  t.ok(inputs.some(name => name.endsWith('primitives-portable.js')))
  t.notOk(inputs.some(name => name.endsWith('primitives-node.js')))
})

t.test(
  'the sources that the maps of its modules name are packed: a bundler that follows maps warns of others',
  async t => {
    const { files } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8'))
    const { inputs } = await bundleClient('esm')
    const modules = inputs.filter(name => name.startsWith('dist/src/'))
    t.ok(modules.length > 10)
    for (const name of modules) {
      const { sources } = JSON.parse(readFileSync(join(PROJECT_ROOT, `${name}.map`), 'utf8'))
      const source = relative(PROJECT_ROOT, join(PROJECT_ROOT, name, '..', sources[0]))
      t.ok(files.includes(source.split('/')[0]), source)
    }
  },
)

t.test(
  'React Native has what it needs: no decoder, no streams, no Unicode properties in patterns',
  async t => {
    const bundle = await bundleClient('iife')
    t.notMatch(Buffer.from(bundle.code).toString(), /\\p\{/)
    const { fetch: _, ...platform } = { TextEncoder, AbortController, setTimeout, clearTimeout, fetch }
    const { LogClient } = load(bundle, platform)
    const honest = log.fetch()
    // An XMLHttpRequest underneath: the whole body at once, as text or as bytes.
    const fetchAsInReactNative = async (url: string, init: { readonly body?: string }) => {
      const answer = await honest(url, init)
      return {
        status: answer.status,
        text: () => answer.text(),
        arrayBuffer: () => answer.arrayBuffer(),
      }
    }
    const app = new LogClient({ ...log.published, url: 'https://log.example', fetch: fetchAsInReactNative })
    const { vrfHash, publicKey } = log.leaf(3)
    const device = { userId: '1', deviceId: '1', vrfHash, publicKeys: [publicKey] }
    t.match(await app.lookUp(device), { kind: 'verified', publicKey })
    t.match(await app.checkOwnKeys(device), { kind: 'clean' })
    log.grow(300)
    t.match(await app.refreshCheckpoint(), { kind: 'verified', checkpoint: { treeSize: 300 } })
  },
)

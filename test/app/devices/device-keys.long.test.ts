/** The keys of a device with its app open in several tabs of a browser. */

import { build } from 'esbuild'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../../support/browser.ts'
import { openServer } from '../../support/open-server.ts'
import { builtProgram } from '../../support/programs.ts'

t.test(
  'tabs that make keys in the same instant have the same ones',
  { skip: skipWithoutChromium },
  async t => {
    const server = await openServer({ dataFolder: t.testdir() })
    t.teardown(() => server.end())
    const context = await (await openBrowser(t))!.newContext()
    const entry = `
    export { webCryptoKeys } from ${JSON.stringify(builtProgram('src/app/devices/device-keys'))}
    export { indexedDbStorage } from ${JSON.stringify(builtProgram('src/app/storage/indexed-db-storage'))}
  `
    const { outputFiles } = await build({
      stdin: { contents: entry, resolveDir: '/' },
      bundle: true,
      platform: 'browser',
      format: 'iife',
      globalName: 'app',
      write: false,
    })
    const openTab = async () => {
      const page = await context.newPage()
      await page.goto(`${server.http}/app/api/meta`)
      await page.evaluate(`${outputFiles[0]!.text}
      window.publicKey = async () => (await app.webCryptoKeys(app.indexedDbStorage())('7')).publicKey
      window.publicKeys = () => Promise.all([publicKey(), publicKey()])
    `)
      return page
    }
    const tabs = await Promise.all([1, 2].map(openTab))
    const made = await Promise.all(tabs.map(tab => tab.evaluate('publicKey()')))
    t.equal(new Set(made).size, 1)
    t.equal(await tabs[0]!.evaluate('publicKey()'), made[0], 'and they are the ones that are kept')
  },
)

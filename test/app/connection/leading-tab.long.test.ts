/** Tabs of one device in a browser: one leads, by a lock, until it ends or another tab takes the lead. */

import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../../support/browser.ts'
import { openServer } from '../../support/open-server.ts'
import { builtProgram } from '../../support/programs.ts'

t.test(
  'a tab whose lead is taken hears of it, and one that is ended lets go',
  { skip: skipWithoutChromium },
  async t => {
    const server = await openServer({ dataFolder: t.testdir() })
    t.teardown(() => server.end())
    const context = await (await openBrowser(t))!.newContext()
    const { outputFiles } = await build({
      entryPoints: [builtProgram('src/app/connection/leading-tab')],
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
        window.heard = []
        window.life = new AbortController()
        window.lead = isTaken => void app.leadTabs('lead', life.signal, {
          isTaken,
          onWaiting: () => heard.push('waiting'),
          onLost: () => heard.push('lost'),
        }).then(() => heard.push('leads'))
      `)
      return page
    }
    const hears = (page: Page, ...words: readonly string[]) =>
      page.waitForFunction(`heard.join() === '${words.join()}'`)
    const [first, second, third] = [await openTab(), await openTab(), await openTab()]
    await first.evaluate('lead(false)')
    await hears(first, 'leads')
    await second.evaluate('lead(true)')
    await hears(second, 'leads')
    await hears(first, 'leads', 'lost')
    await third.evaluate('lead(false)')
    await hears(third, 'waiting')
    await second.evaluate('life.abort()')
    await hears(third, 'waiting', 'leads')
    t.same(await second.evaluate('heard'), ['leads'])
    t.same(await first.evaluate('heard'), ['leads', 'lost'])

    await third.evaluate('life.abort()')
    await second.evaluate('life = new AbortController(), heard.length = 0, lead(false), life.abort()')
    await hears(second, 'leads')
    await second.evaluate('life = new AbortController(), lead(false)')
    await hears(second, 'leads', 'leads')
  },
)

/** Calls with sound and picture, whole: the real server, the SDK in three tabs of a real browser, and a real Janus. */

import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, PATIENCE_MS, skipWithoutChromium, WITH_CAMERA } from '../../support/browser.ts'
import { CODE, emailOf, settingsFor } from '../../support/call-people.ts'
import { skipWithoutJanus, startJanus } from '../../support/janus.ts'
import { openServer } from '../../support/open-server.ts'
import { builtProgram } from '../../support/programs.ts'

const SCRIPT = `
window.failed = []
window.keyAtMs = 0
const newWorker = () => new Worker(URL.createObjectURL(new Blob([workerCode])))
window.begin = async (pins, address, code) => {
  const me = new app.Callsign({ server: location.origin, pins, storage: app.indexedDbStorage() })
  window.me = me
  window.follow = call => {
    window.call = call
    window.media = app.joinMedia(call, { relay: () => me.relay(), newWorker })
    media.on('participant', ({ undecryptable }) => undecryptable && failed.push(undecryptable))
    call.on('key', () => keyAtMs = Date.now())
    window.errors = []
    media.on('error', ({ code, message }) => errors.push([code, message]))
  }
  me.on('ringing', async call => {
    await call.answer()
    follow(call)
  })
  me.on('resumed', follow)
  if ((await me.resume()) === undefined) await me.signIn(address, () => code)
  while (me.connection !== 'connected') await me.once('connection')
  return me.userId
}
// Requests for the key; and news of new keys get lost while it is deaf.
window.asked = []
window.isDeaf = false
const { fetch: ask } = window
window.fetch = (url, init) => {
  if (String(url).endsWith('/request-rejoin')) asked.push(String(url))
  return ask(url, init)
}
window.WebSocket = class extends WebSocket {
  set onmessage(listener) {
    super.onmessage = listener && (event => isDeaf && String(event.data).includes('"key_update"') ? undefined : listener(event))
  }
}
// Sound and picture of so many members came since the last look.
let before = new Map()
window.look = async () => { before = (await media.statistics()).participants }
window.receives = async (count, frames) => {
  const { participants } = await media.statistics()
  const came = (feed, opened, name) => (opened[name] ?? 0) >= (before.get(feed)?.opened[name] ?? 0) + frames
  const full = [...participants].filter(([feed, { opened }]) => came(feed, opened, 'microphone') && came(feed, opened, 'camera'))
  return full.length === count
}
`

/** The SDK with its media, and the worker, as scripts for a page of the server. */
async function bundle(): Promise<string> {
  const entry = ['app', 'media/media'].map(name => `export * from '${builtProgram(`src/app/${name}`)}'`)
  const options = { bundle: true, platform: 'browser', write: false, logLevel: 'silent' } as const
  const stdin = { contents: entry.join('\n'), resolveDir: import.meta.dirname }
  const app = await build({ ...options, stdin, format: 'iife', globalName: 'app' })
  const worker = await build({ ...options, entryPoints: [builtProgram('src/app/media/worker')] })
  const workerCode = JSON.stringify(worker.outputFiles[0]!.text)
  return `${app.outputFiles[0]!.text}\nconst workerCode = ${workerCode}\n${SCRIPT}\n;Object.assign(window, { app })`
}

async function until(page: Page, script: string): Promise<void> {
  const isSo = await page.evaluate(`(async () => {
    const began = performance.now()
    while (!(await (${script}))) {
      if (performance.now() - began > ${PATIENCE_MS}) return false
      await new Promise(resolve => setTimeout(resolve, 30))
    }
    return true
  })()`)
  if (isSo) return
  const situation = await page.evaluate(`(async () => JSON.stringify({
    call: [call.state, call.ending, call.media, call.keys.map(({ epoch }) => epoch)],
    media: [media.state, media.epoch, media.participants, [...(await media.statistics()).participants], failed, errors],
  }))()`)
  throw new Error(`not within ${PATIENCE_MS} ms: ${script}; ${situation}`)
}

async function allReceive(pages: readonly Page[], frames: number): Promise<void> {
  for (const page of pages) await page.evaluate('look()')
  for (const page of pages) await until(page, `receives(${pages.length - 1}, ${frames})`)
}

t.test(
  'three people are in an encrypted call, through a new key, a reload, a gateway that restarts, and a removal',
  { skip: skipWithoutChromium || skipWithoutJanus },
  async t => {
    const janus = await startJanus(t, t.testdir({ janus: {}, server: {} }))
    const environment = { ...settingsFor(3), ...janus.environment }
    const server = await openServer({ dataFolder: `${t.testdirName}/server`, environment })
    t.teardown(() => server.end())
    const browser = (await openBrowser(t))!
    const script = await bundle()
    const pins = JSON.stringify({ vkey: server.vkey, vrfPublicKey: server.vrfPublicKey })
    const begin = async (page: Page, at: number) => {
      await page.goto(`${server.http}/app/api/meta`)
      return page.evaluate<string>(
        `(() => { ${script}; return begin(${pins}, '${emailOf(at)}', '${CODE}') })()`,
      )
    }
    const open = async (at: number) => {
      const page = await (await browser.newContext(WITH_CAMERA)).newPage()
      return { page, userId: await begin(page, at) }
    }
    const [ann, bob, cat] = [await open(0), await open(1), await open(2)]
    for (const { page, userId } of [bob, cat]) {
      await ann.page.evaluate(`me.contacts.request({ userId: '${userId}' })`)
      await page.evaluate(`me.contacts.accept('${ann.userId}')`)
    }
    const pages = [ann.page, bob.page, cat.page]
    await ann.page.evaluate(`me.call(['${bob.userId}', '${cat.userId}'], { video: true }).then(follow)`)
    for (const page of pages) await until(page, `window.call?.state === 'active'`)
    await allReceive(pages, 5)
    const names = await bob.page.evaluate('media.participants.map(({ userId }) => userId).sort()')
    t.same(names, [ann.userId, cat.userId].sort(), 'each is shown by their user')

    await ann.page.evaluate('call.renewKey()')
    for (const page of pages) await until(page, 'media.epoch === 2')
    await allReceive(pages, 5)
    const keyAtMs = await Promise.all(pages.map(page => page.evaluate<number>('keyAtMs')))
    // A key is used five seconds after it came.
    if (Math.max(...keyAtMs) - Math.min(...keyAtMs) > 2_500)
      t.comment('the key came too late on this machine')
    else for (const page of pages) t.same(await page.evaluate('failed'), [], 'no frame was lost')

    await cat.page.evaluate('asked.length = 0, isDeaf = true')
    await ann.page.evaluate('call.renewKey()')
    for (const page of pages) await until(page, 'media.epoch === 3')
    await allReceive(pages, 5)
    t.same(await cat.page.evaluate('failed.slice(0, 1)'), ['no-key'])
    const asked = await cat.page.evaluate<string[]>('asked')
    t.ok(asked.length === 1 || asked.length === 2, `${asked.length} asks for two members`)

    await begin(cat.page, 2)
    await until(cat.page, `window.call?.state === 'active'`)
    await allReceive(pages, 5)

    await janus.restart()
    const restarted = performance.now()
    for (const page of pages) await until(page, `media.state === 'connected'`)
    await allReceive(pages, 5)
    t.comment(`back ${Math.round(performance.now() - restarted)} ms after the gateway`)

    const stay = [ann.page, bob.page]
    const roomId = await ann.page.evaluate('call.roomId')
    for (const page of stay)
      await page.evaluate(
        `window.states = []; media.on('state', state => states.push([state, Math.round(performance.now())]))`,
      )
    await ann.page.evaluate(`call.remove('${cat.userId}')`)
    await until(cat.page, `call.ending === 'removed' && media.state === 'closed' && media.own.size === 0`)
    for (const page of stay)
      await until(
        page,
        `call.roomId !== ${roomId} && media.state === 'connected' && media.participants.length === 1 && media.participants[0].userId`,
      )
    await allReceive(stay, 3)
    t.comment(`in the next room: ${await bob.page.evaluate('JSON.stringify(states)')}`)

    await ann.page.evaluate('call.end()')
    await until(bob.page, `call.state === 'ended' && media.state === 'closed'`)
    t.same(
      await janus.videoRoom({ request: 'list', admin_key: janus.secrets.adminKey }).then(({ list }) => list),
      [],
    )
  },
)

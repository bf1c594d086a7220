/** `Media` by way of a real LiveKit: two pages see and hear each other, with their devices as they choose. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t from 'tap'
import { skipWithoutChromium } from '../../support/browser.ts'
import { openHome } from '../../support/home-page.ts'
import { buildLiveKit, startLiveKit } from '../../support/livekit.ts'
import { befriendPages, launchWithCameras, openPerson, until, VOICE } from '../../support/media-page.ts'
import { builtProgram } from '../../support/programs.ts'
import { PROJECT_ROOT } from '../../support/vectors.ts'

const livekitBuild = await buildLiveKit()

/** Gives the page `lk`: the parts of the package with LiveKit's SDK, as an app bundles them. */
async function bundleInto(page: Page): Promise<void> {
  const { outputFiles } = await build({
    stdin: {
      contents: `export { useLiveKit } from '${builtProgram('src/ui/livekit')}'
        export { Media } from '${builtProgram('src/ui/media/media')}'`,
      resolveDir: PROJECT_ROOT,
    },
    bundle: true,
    platform: 'browser',
    format: 'esm',
    write: false,
    logLevel: 'silent',
  })
  const worker = join(PROJECT_ROOT, 'node_modules/livekit-client/dist/livekit-client.e2ee.worker.js')
  const files = { '**/lk.js': outputFiles[0]!.text, '**/lk-worker.js': readFileSync(worker, 'utf8') }
  for (const [url, body] of Object.entries(files))
    await page.route(url, route => route.fulfill({ contentType: 'text/javascript', body }))
  await page.evaluate(`import('/lk.js').then(module => {
    globalThis.lk = module
    lk.useLiveKit(() => new Worker('/lk-worker.js'))
  })`)
}

t.test('two pages in a call by LiveKit', { skip: skipWithoutChromium || livekitBuild.skip }, async t => {
  const folder = t.testdir({ livekit: {} })
  const livekit = await startLiveKit(t, livekitBuild, join(folder, 'livekit'))
  const house = await openHome(t, await launchWithCameras(t), livekit.environment)
  const ann = await openPerson(house, 'Ann', VOICE)
  const bob = await openPerson(house, 'Bob', VOICE)
  for (const page of [ann, bob]) await bundleInto(page)
  const [, bobId] = await befriendPages(ann, bob)
  await ann.evaluate(`me.call(['${bobId}'], { video: true }).then(call => {
      globalThis.call = call
      globalThis.media = new lk.Media(me, call)
    })`)
  await until(bob, 'me.calls[0]?.isVerified')
  await bob.evaluate(`me.calls[0].answer().then(() => {
      globalThis.media = new lk.Media(me, me.calls[0], { microphone: false })
      globalThis.video = Object.assign(document.createElement('video'), { autoplay: true })
      document.body.append(video)
      media.on('changed', () => media.view.peers[0]?.play(video, false))
    })`)
  const peer = 'media.view.peers[0]'
  await until(
    bob,
    `${peer}?.hasPicture && video.videoWidth > 0 && ${peer}.userId === me.calls[0].caller.userId`,
  )
  await until(bob, `${peer}.isSpeaking`)
  await ann.evaluate('media.coverCamera(true)')
  t.equal(await ann.evaluate(`live('video').length`), 0)
  await until(bob, `!${peer}.hasPicture`)
  await ann.evaluate('media.coverCamera(false)')
  await until(bob, `${peer}.hasPicture`)
  await ann.evaluate('media.useCamera(media.devices.cameras[2].id)')
  await until(bob, `${peer}.hasPicture && video.getVideoPlaybackQuality().totalVideoFrames > 5`)
  await ann.evaluate('media.mute(true)')
  await until(bob, `${peer}.isMuted`)
  await bob.evaluate('media.mute(false)')
  await until(ann, `${peer}.isSpeaking`)
  await ann.evaluate('call.end()')
  await until(bob, `live('video').length + live('audio').length === 0`)
})

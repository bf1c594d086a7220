/**
 * A call on a line that grows narrow and wide again, in a network namespace: a real browser behind it, a real Janus and the senders
 * before it. It counts frames and samples of sound.
 */

import { chromium } from 'playwright-core'
import t, { type Test } from 'tap'
import { pagesOf, SWITCHES, skipWithoutChromium } from '../../support/browser.ts'
import { skipWithoutJanus } from '../../support/janus.ts'
import { MediaTab, openMediaHouse, openRoom } from '../../support/media-tabs.ts'
import { openNarrowLine, skipWithoutNamespaces } from '../../support/narrow-network.ts'

const skip = skipWithoutChromium || skipWithoutJanus || skipWithoutNamespaces()
const SAMPLES_PER_SECOND = 48_000

interface Look {
  /** Samples of sound, and those that were made up. */
  readonly played: number
  readonly concealed: number
  /** By user: frames decoded. */
  readonly frames: Readonly<Record<string, number>>
}

const LOOKS = `
window.look = async () => {
  const receiving = connections.at(-1).getReceivers().length > 3 ? connections.at(-1) : connections.at(-2)
  let played = 0, concealed = 0
  for (const report of (await receiving.getStats()).values()) {
    if (report.type !== 'inbound-rtp' || report.kind !== 'audio' || report.packetsReceived === 0) continue
    played += report.totalSamplesReceived
    concealed += report.concealedSamples
  }
  return { played, concealed, frames: Object.fromEntries(['1', '2'].map(user => [user, picturesOf(user)])) }
}
window.cameraOf = user => media.participants.find(({ userId }) => userId === user)?.camera
window.paused = () => ['1', '2'].filter(user => cameraOf(user)?.isPaused).length
window.isWhole = () => paused() === 0 && ['1', '2'].every(user => widthOf(user) > 400)
`

/** Seconds of sound since then, and how much of it was made up. */
function since(before: Look, now: Look): { readonly seconds: number; readonly share: number } {
  // A connection that was made anew counts from zero.
  const from = now.played < before.played ? { played: 0, concealed: 0 } : before
  const played = now.played - from.played
  return { seconds: played / SAMPLES_PER_SECOND, share: (now.concealed - from.concealed) / played }
}

async function openCall(t: Test) {
  const line = openNarrowLine(t)
  const house = await openMediaHouse(t, '0.0.0.0')
  await line.forward(house.url)
  const browser = await chromium.launch({ executablePath: line.chromium, args: SWITCHES })
  t.teardown(() => browser.close())
  const room = await openRoom(house.janus, 'vp8', undefined, 512_000)
  await openSender('1')
  const bob = await openSender('2')
  // One of three speaks at a time.
  await bob.evaluate(`media.send('microphone', undefined)`)
  const cat = await MediaTab.open(house, { fps: 1 }, pagesOf(browser))
  await cat.evaluate(`{ ${LOOKS} }`)
  // Streams of its own would bring the gateway's reports down the line.
  for (const name of ['microphone', 'camera']) await cat.evaluate(`media.send('${name}', undefined)`)
  const admission = await room.admit('3')
  await cat.join({ ...admission, url: admission.url.replace('127.0.0.1', line.address) })
  return { line, cat }

  async function openSender(user: string): Promise<MediaTab> {
    const tab = await MediaTab.open(house, { side: 80, fps: 10, isRestless: true })
    await tab.join(await room.admit(user))
    return tab
  }
}

t.test('a call bends: fewer pictures on a narrow line, all of its sound, and all back', { skip }, async t => {
  const { line, cat } = await openCall(t)
  const look = () => cat.evaluate<Look>('look()')
  const began = performance.now()
  /** Until there is so much more sound. */
  const listen = async (seconds: number) => {
    const before = await look()
    await cat.until(`look().then(({ played }) => played >= ${before.played + seconds * SAMPLES_PER_SECOND})`)
    return { before, after: await look() }
  }
  const narrow = async (kbits: number, bent: string, shareMax: number) => {
    const before = await look()
    line.narrow(kbits)
    await cat.until(bent)
    const bending = since(before, await look())
    // It may go down by another rung.
    await listen(3)
    const { before: adapted, after } = await listen(12)
    const [steady, whole] = [since(adapted, after), since(before, after)]
    const percent = (share: number) => `${(100 * share).toFixed(2)} %`
    t.comment(
      `${kbits} kbit/s: bent within ${bending.seconds.toFixed(1)} s; of the sound ${percent(steady.share)} was made up, ${percent(whole.share)} with the time before`,
    )
    t.ok(steady.share <= shareMax, `${kbits} kbit/s: ${percent(steady.share)} of the sound was made up`)
    return { adapted, after }
  }
  await cat.until('isWhole()')

  const small = await narrow(300, `['1', '2'].some(user => widthOf(user) < 400) || paused() > 0`, 0.03)
  t.ok(
    small.after.frames['1']! + small.after.frames['2']! >
      small.adapted.frames['1']! + small.adapted.frames['2']!,
  )

  await narrow(130, 'paused() > 0', 0.01)
  await narrow(70, 'paused() === 2', 0.03)

  line.narrow()
  const back = await look()
  await cat.until('isWhole()')
  const { seconds } = since(back, await look())
  t.comment(`all back within ${seconds.toFixed(1)} s of sound`)
  t.ok(seconds <= 20, `${seconds} s`)
  const { frames } = await look()
  await cat.until(`['1', '2'].every(user => picturesOf(user) > ${JSON.stringify(frames)}[user] + 10)`)
  t.equal(await cat.evaluate('connections.length'), 2, 'it never joined anew')
  // Lost packets are sent again, and a frame may then come twice.
  t.same(await cat.evaluate(`failures().then(all => all.filter(([, reason]) => reason !== 'replayed'))`), [])
  t.comment(`${Math.round((performance.now() - began) / 1_000)} s in all`)
})

/** explore */
import { chromium } from 'playwright-core'
import t from 'tap'
import { SWITCHES } from '../../support/browser.ts'
import { MediaTab, openMediaHouse, openRoom } from '../../support/media-tabs.ts'
import { openNarrowLine, skipWithoutNamespaces } from '../../support/narrow-network.ts'

t.test('explore', { skip: skipWithoutNamespaces() }, async t => {
  const line = openNarrowLine(t, `${t.testdir({ line: {}, janus: {} })}/line`)
  const house = await openMediaHouse(t, `${t.testdirName}/janus`, { address: line.address })
  await line.forward(house.url)
  const far = await chromium.launch({ executablePath: line.chromium, args: SWITCHES })
  t.teardown(() => far.close())
  const room = await openRoom(house.janus, 'vp8', undefined, 512_000)
  const sender = { simulcast: true, side: 80, fps: 15, isRestless: true }
  const ann = await MediaTab.open(house, sender)
  const bob = await MediaTab.open(house, sender)
  const cat = await MediaTab.open(house, { browser: far, fps: 1 })
  await ann.join(await room.admit('1'))
  await bob.join(await room.admit('2'))
  await Promise.race([cat.join(await room.admit('3')), new Promise(r => setTimeout(r, 6000))])
  t.comment(
    JSON.stringify(await cat.situation()),
    await cat.evaluate(
      'connections.map(c=>[c.connectionState,c.iceConnectionState,c.localDescription?.sdp.match(/a=candidate.*/g), c.remoteDescription?.sdp.match(/a=candidate.*/g)])',
    ),
    await cat.evaluate('sockets.map(s=>[s.url,s.readyState])'),
  )
  await cat.receives(2, 10)
  await cat.evaluate(`{
    window.readAll = async () => {
      const out = {}
      for (const c of connections) for (const r of (await c.getStats()).values()) {
        if (r.type === 'inbound-rtp') out[r.mid] = { kind: r.kind, b: r.bytesReceived + r.headerBytesReceived, p: r.packetsReceived, lost: r.packetsLost, c: r.concealedSamples, s: r.totalSamplesReceived, f: r.framesDecoded, w: r.frameWidth, j: r.jitter, jb: r.jitterBufferDelay / r.jitterBufferEmittedCount, silent: r.silentConcealedSamples }
        if (r.type === 'candidate-pair' && r.nominated && c.getReceivers().length > 1) out.pair = { b: r.bytesReceived, rtt: r.currentRoundTripTime, avail: r.availableIncomingBitrate }
      }
      out.rung = window.trace?.()
      return out
    }
  }`)
  const watch = async (label: string, seconds: number) => {
    let before = (await cat.evaluate('readAll()')) as any
    const first = before
    for (let at = 0; at < seconds; at++) {
      await new Promise(resolve => setTimeout(resolve, 1000))
      const now = (await cat.evaluate('readAll()')) as any
      const parts = Object.keys(now)
        .filter(k => now[k]?.kind)
        .map(mid => {
          const [a, b] = [before[mid] ?? {}, now[mid]]
          const kb = Math.round(((b.b - (a.b ?? 0)) * 8) / 1000)
          return b.kind === 'audio'
            ? `A${kb}k p${b.p - a.p} l${b.lost - a.lost} c${(((b.c - a.c) / Math.max(1, b.s - a.s)) * 100).toFixed(1)}% j${b.j}`
            : `V${kb}k l${b.lost - a.lost} f${b.f - a.f} w${b.w}`
        })
      t.comment(
        `${label} ${at} ${Math.round(((now.pair.b - before.pair.b) * 8) / 1000)}k rtt${now.pair.rtt} av${now.pair.avail} ${parts.join(' | ')} ${JSON.stringify(now.rung)}`,
      )
      before = now
    }
    const audio = Object.keys(before).filter(k => before[k]?.kind === 'audio')
    const c = audio.reduce((sum, k) => sum + before[k].c - first[k].c, 0),
      s = audio.reduce((sum, k) => sum + before[k].s - first[k].s, 0)
    t.comment(`${label} overall concealed ${((c / s) * 100).toFixed(2)} %`)
  }
  const plan = JSON.parse(process.env.PLAN ?? '[["wide",null,5],["130",130,10],["70",70,8]]')
  for (const [label, kbits, seconds] of plan) {
    line.narrow(kbits ?? undefined)
    if (process.env.PAUSE === label) await cat.evaluate(process.env.DO!)
    await watch(label, seconds)
  }
})

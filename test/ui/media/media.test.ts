/** Picture and sound between two pages without a gateway: other devices, a camera that is off, a screen, and who speaks. */

import t from 'tap'
import { skipWithoutChromium } from '../../support/browser.ts'
import { openHome } from '../../support/home-page.ts'
import { befriendPages, launchWithCameras, openPerson, until, VOICE } from '../../support/media-page.ts'
import { SDK_MODULE } from '../../support/sdk-module.ts'

const SCREEN = `if (navigator.mediaDevices) navigator.mediaDevices.getDisplayMedia = async () => {
  const canvas = document.createElement('canvas')
  Object.assign(canvas, { width: 320, height: 240 })
  setInterval(() => canvas.getContext('2d').fillRect(0, 0, Math.random() * 320, 240), 50)
  globalThis.screenTrack = canvas.captureStream(10).getVideoTracks()[0]
  return new MediaStream([screenTrack])
}`
/** Plays the peer's picture and screen. */
const PLAY = `globalThis.videos = [0, 1].map(() => Object.assign(document.createElement('video'), { autoplay: true }))
  document.body.append(...videos)
  const play = () => media.view.peers[0] && videos.forEach((video, at) => media.view.peers[0].play(video, at === 1))
  media.on('changed', play)
  play()`

t.test(
  'two pages see and hear each other, with whichever devices they choose',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, await launchWithCameras(t))
    const [ann, bob] = [await openPerson(house, 'Ann', `${SCREEN}\n${VOICE}`), await openPerson(house, 'Bob')]
    const [, bobId] = await befriendPages(ann, bob)
    await ann.evaluate(`me.call(['${bobId}'], { video: true }).then(call => {
      globalThis.call = call
      globalThis.media = new ui.Media(me, call)
    })`)
    await until(bob, 'me.calls[0]?.isVerified')
    await bob.evaluate(
      'me.calls[0].answer().then(() => { globalThis.media = new ui.Media(me, me.calls[0], { microphone: false }) })',
    )
    await bob.evaluate(PLAY)
    const peer = 'media.view.peers[0]'
    await until(bob, `${peer}?.hasPicture && videos[0].videoWidth > 0`)
    await until(bob, `${peer}.isSpeaking`)
    await until(ann, 'media.view.isSpeaking')
    t.equal(await bob.evaluate(`live('audio').length`), 0, 'a call that began muted opens no microphone')
    t.equal(await bob.evaluate(`${peer}.quality`), 'good')

    const camera = `media.view.local.getVideoTracks()[0]?.getSettings().deviceId`
    const first = await ann.evaluate(camera)
    const other = await ann.evaluate('media.devices.cameras[2].id')
    t.not(other, first)
    await ann.evaluate(`media.useCamera('${other}')`)
    t.equal(await ann.evaluate(camera), other)
    await ann.evaluate(`media.useMicrophone(media.devices.microphones.at(-1).id)`)
    await bob.evaluate('globalThis.frames = videos[0].getVideoPlaybackQuality().totalVideoFrames')
    await until(bob, 'videos[0].getVideoPlaybackQuality().totalVideoFrames > frames + 3')
    t.equal(await ann.evaluate(`live('video').length + live('audio').length`), 2)

    await ann.evaluate('media.coverCamera(true)')
    t.equal(await ann.evaluate(`live('video').length`), 0, 'the light is out')
    await until(bob, `!${peer}.hasPicture`)
    await ann.evaluate('media.coverCamera(false)')
    await until(bob, `${peer}.hasPicture`)
    await ann.evaluate('media.mute(true)')
    await until(bob, `${peer}.isMuted && !${peer}.isSpeaking`)
    await until(ann, 'media.view.isSpeakingMuted')
    await ann.evaluate('media.mute(false)')
    await until(bob, `!${peer}.isMuted`)

    t.equal(await ann.evaluate('media.view.canShareScreen'), true)
    await ann.evaluate('media.shareScreen(true)')
    await until(bob, `${peer}.hasScreen && videos[1].videoWidth > 0`)
    t.equal(await ann.evaluate('screenTrack.contentHint'), 'detail', 'it keeps its size on a narrow line')
    t.equal(await bob.evaluate(`${peer}.hasPicture`), true, 'beside the camera')
    await ann.evaluate('media.shareScreen(false)')
    await until(bob, `!${peer}.hasScreen`)
    t.equal(await ann.evaluate('screenTrack.readyState'), 'ended')

    await ann.evaluate('call.end()')
    await until(bob, `live('video').length + live('audio').length === 0`)
  },
)

t.test(
  'two pages connect although one hears the other before the news that they have come',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, await launchWithCameras(t))
    const [ann, bob] = [await openPerson(house, 'Ann'), await openPerson(house, 'Bob')]
    const [, bobId] = await befriendPages(ann, bob)
    await ann.evaluate(`me.call(['${bobId}']).then(call => {
      globalThis.hasCome = false
      const get = (call, name) => {
        if (name === 'participants' && !hasCome) return call.participants.filter(one => one.userId === me.userId)
        return typeof call[name] === 'function' ? call[name].bind(call) : call[name]
      }
      globalThis.media = new ui.Media(me, new Proxy(call, { get }))
    })`)
    await until(bob, 'me.calls[0]?.isVerified')
    await bob.evaluate(
      'me.calls[0].answer().then(() => { globalThis.media = new ui.Media(me, me.calls[0]) })',
    )
    await until(ann, 'media.view.peers.length === 1')
    await ann.evaluate(`me.calls[0].emit('changed')
      hasCome = true
      me.calls[0].emit('changed')`)
    for (const page of [ann, bob]) await until(page, `media.view.peers[0]?.state === 'connected'`)
    t.pass('each is connected to the other')
  },
)

t.test(
  'a page loaded again in a call is muted, and its camera off, as its user left them until the call ends',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, await launchWithCameras(t))
    const [ann, bob] = [await openPerson(house, 'Ann'), await openPerson(house, 'Bob')]
    const [, bobId] = await befriendPages(ann, bob)
    await ann.evaluate(`me.call(['${bobId}'], { video: true }).then(call => {
      globalThis.media = new ui.Media(me, call)
    })`)
    await until(bob, 'me.calls[0]?.isVerified')
    await bob.evaluate('me.calls[0].answer()')
    await until(ann, `me.calls[0].state === 'active' && live('video').length + live('audio').length === 2`)
    await ann.evaluate('media.mute(true)')
    await ann.evaluate('media.coverCamera(true)')
    await ann.reload()
    await until(ann, `globalThis.me?.calls[0]?.state === 'active'`)
    await ann.evaluate(`import('${SDK_MODULE}').then(ui => {
      globalThis.media = new ui.Media(me, me.calls[0])
    })`)
    await until(ann, 'media.view.hasMicrophone')
    t.same(await ann.evaluate('[media.view.isMuted, media.view.isCameraOff, opened.length]'), [true, true, 0])
    await ann.evaluate('media.mute(false)')
    await until(ann, `!media.view.isMuted && live('audio').length === 1`)
    t.equal(await ann.evaluate('sessionStorage.length'), 1)
    await bob.evaluate('me.calls[0].end()')
    await until(ann, 'sessionStorage.length === 0')
  },
)

t.test(
  'a server without a gateway, or with one that the app does not use, is met with a sentence',
  { skip: skipWithoutChromium },
  async t => {
    const house = await openHome(t, await launchWithCameras(t))
    const [ann, bob] = [await openPerson(house, 'Ann'), await openPerson(house, 'Bob')]
    const [, bobId] = await befriendPages(ann, bob)
    await ann.evaluate(`const watch = me.watch.bind(me)
      me.watch = (topic, listener) => watch(topic.replace('/dev.', '/production.'), listener)
      me.call(['${bobId}']).then(call => { globalThis.media = new ui.Media(me, call) })`)
    await until(ann, `/^This server has no media gateway/.test(media?.view.problem)`)

    await ann.evaluate(`{
      media.close()
      const get = (call, name) => {
        if (name === 'media') return { kind: 'livekit' }
        return typeof call[name] === 'function' ? call[name].bind(call) : call[name]
      }
      globalThis.media = new ui.Media(me, new Proxy(me.calls[0], { get }))
    }`)
    await until(ann, `/useLiveKit/.test(media.view.problem)`)
  },
)

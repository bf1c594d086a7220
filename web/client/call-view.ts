/** The call that this tab is in: pictures, the key's digits, who is there, and the way out. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { Call, CallMember, CallParticipant } from '../../src/app/app.ts'
import type { MediaPeer, MediaView } from '../../src/ui/media/media-view.ts'
import type { App } from './app.ts'
import { type Icon, iconView } from './icons.ts'
import { inviteesView } from './people-view.ts'
import type { State } from './state.ts'
import { durationText } from './times.ts'
import { avatar, CONNECTIONS, namesText, type View } from './view-parts.ts'

export function callView(state: State, call: Call, app: App): TemplateResult {
  const others = call.participants.filter(({ userId }) => userId !== state.user?.userId)
  const present = others.filter(({ state }) => !GONE.has(state))
  const names = (present.length > 0 ? present : others).map(({ name }) => name)
  return html`<section class="card call" aria-label="The call">
    ${picturesView(state, call)}
    <header class="call-head">
      <div class="grow">
        <h2>${namesText(names)}</h2>
        <p class="quiet" role="status">${statusText(call, others, app)}</p>
        ${connectionView(state)}
      </div>
      ${peopleView(state, call, app)}
    </header>
    <footer class="call-foot">
      ${keyAsksView(state, app)} ${keylessView(call, state.doing, app)} ${mediaText(state)} ${fingerprintView(state, call)} ${controlsView(state, call, app)}
    </footer>
  </section>`
}

function statusText(call: Call, others: readonly CallMember[], { nowMs }: App): string {
  const { startedAtMs = nowMs, isVideo } = call
  switch (call.state) {
    case 'rejoining':
      return 'Coming back: asking the others for the key …'
    case 'keyless':
      return 'Nobody has given the key.'
    case 'ringing':
      return ringingText(others)
    default:
      if (!others.some(({ state }) => state === 'joined')) return 'Nobody else is here now.'
      return `${isVideo ? 'Video' : 'Audio'} call, ${durationText((nowMs - startedAtMs) / 1000)}`
  }
}

function ringingText(others: readonly CallMember[]): string {
  if (others.some(({ state }) => state === 'ringing')) return 'Ringing …'
  const called = others.filter(({ state }) => state === 'invited')
  if (called.length === 0 || !called.every(one => one.isUnreachable)) return 'Calling …'
  return called.length === 1 ? 'Can’t be reached now' : 'Nobody can be reached now'
}

/** A tile for each other person who is there, and what they show of their screens before all. */
function picturesView({ media, user }: State, { participants, state }: Call): View {
  const { local, peers, isSoundOn, isCameraOff, isLinkLost } = media
  const others = participants.filter(({ userId }) => userId !== user?.userId)
  const present = others.filter(one => one.state === 'joined')
  const screens = peers.filter(({ hasScreen }) => hasScreen)
  const hasOwn = local !== undefined && local.getVideoTracks().length > 0 && !isCameraOff
  // While it rings one's own picture has the window, or the first person who is called.
  const shown = state === 'ringing' ? (hasOwn ? [] : others.slice(0, 1)) : present
  const tiles = shown.map(one =>
    tileView(
      one,
      peers.find(({ userId }) => userId === one.userId),
      { isSoundOn, isLinkLost },
    ),
  )
  const unknown = peers.filter(({ userId, hasStream }) => userId === undefined && hasStream)
  tiles.push(...unknown.map(peer => tileView(UNKNOWN, peer, { isSoundOn, isLinkLost })))
  const othersShown = screens.length + tiles.length
  // One's own picture lies over a single other one, and has a place among several.
  const places = hasOwn && othersShown > 1 ? othersShown + 1 : othersShown
  return html`<div class="pictures count${Math.min(places, TILES_MAX)}">
      ${screens.map(peer => screenView(peer, participants))} ${tiles}
      ${
        hasOwn
          ? html`<video class="own" aria-label="Your camera" data-stream="own" .muted=${true} autoplay playsinline></video>`
          : nothing
      }
    </div>`
}

/** The state of picture and sound, in words. */
function mediaText({ connection, media: { problem, peers, isSoundOn, isLinkLost } }: State): View {
  const isSilent = peers.length > 0 && !isSoundOn
  // Without a connection to the server the page has said so.
  const isLost = isLinkLost && connection === 'connected'
  return html`${isLost ? html`<p class="bad">Your connection is lost. Connecting again …</p>` : nothing}
    ${problem === undefined ? nothing : html`<p class="quiet">${problem}</p>`}
    ${isSilent ? html`<p class="quiet">Sound is off: two tabs of one computer would hear each other.</p>` : nothing}`
}

function tileView(
  { name }: Pick<CallMember, 'name'>,
  peer: MediaPeer | undefined,
  { isSoundOn, isLinkLost }: Pick<MediaView, 'isSoundOn' | 'isLinkLost'>,
) {
  const { hasStream, isMuted, isSpeaking } = peer ?? {}
  const link = peer?.state ?? 'connecting'
  // A device that is gone would leave its last picture standing.
  const hasPicture = peer?.hasPicture === true && link !== 'gone'
  return html`<figure class=${isSpeaking ? 'tile speaking' : 'tile'}>
    ${hasPicture ? nothing : avatar(name)}
    ${
      !hasStream
        ? nothing
        : html`<video class=${hasPicture ? 'remote' : 'sound'} aria-label=${`${name}’s camera`}
          data-stream=${peer?.id} .muted=${!isSoundOn} autoplay playsinline></video>`
    }
    <figcaption>${isMuted ? iconView('microphone', true) : nothing}${name}${link === 'connected' || isLinkLost ? nothing : html` · ${LINK_STATES[link]}`}</figcaption>
  </figure>`
}

function screenView({ id, userId }: MediaPeer, participants: readonly CallMember[]): TemplateResult {
  const { name } = participants.find(one => one.userId === userId) ?? UNKNOWN
  return html`<figure class="tile screen">
    <video class="remote" aria-label=${`${name}’s screen`} data-stream=${`${id} screen`}
      .muted=${true} autoplay playsinline></video>
    <figcaption>${name}’s screen</figcaption>
  </figure>`
}

/**
 * Gives the pictures that were drawn their streams, and plays them; `onSilence` hears that the browser plays no sound
 * before the page is touched. A template would set each stream anew whenever the page is drawn, and one that is set
 * starts over.
 */
export function playStreams(root: ParentNode, { local, peers }: MediaView, onSilence: () => void): void {
  for (const video of root.querySelectorAll<HTMLVideoElement>('video[data-stream]')) {
    const [of, isScreen] = (video.dataset.stream ?? '').split(' ')
    const peer = peers.find(({ id }) => id === of)
    if (of !== 'own') peer?.play(video, isScreen !== undefined)
    else if (local !== undefined && video.srcObject !== local) video.srcObject = local
    if (video.srcObject === null) continue
    if (!video.paused) continue
    video.play().catch((error: unknown) => {
      if (error instanceof DOMException && error.name === 'NotAllowedError' && !video.muted) onSilence()
    })
  }
}

/** Devices that ask for the key and had not joined: a server could have made them up. */
function keyAsksView({ keyAsks, user, doing, call }: State, app: App): View {
  return html`${repeat(
    keyAsks,
    ({ deviceId }) => deviceId,
    ask => {
      const whose =
        ask.userId === user?.userId
          ? 'Another device of yours'
          : html`Another device of <span dir="auto">${call?.participants.find(one => one.userId === ask.userId)?.name ?? ask.displayName}</span>`
      return html`<div class="card attention" role="alert">
        <p>${whose} asks for the call’s key. Whoever has the key hears the call.</p>
        <p class="row"><button class="main" ?disabled=${doing.has('grant-key')}
          @click=${() => app.act('grant-key', () => app.calls.grantKey(ask))}>Give it the key</button>
          <button @click=${() => app.calls.refuseKey(ask)}>Don’t</button></p>
      </div>`
    },
  )}`
}

/** Open while there are two, who compare it most; a shield among many. */
function fingerprintView(state: State, call: Call): View {
  const { fingerprint, keys, participants } = call
  if (fingerprint === undefined) return nothing
  return html`<details class="fingerprint" ?open=${participants.length <= 2}>
    <summary title="The others see the same digits when they have the same key.">${iconView('shield')} Encrypted</summary>
    <p class="digits mono" aria-label="Fingerprint of the call’s key">${fingerprint}</p>
    <p class="quiet">Key <span class="epoch">${keys[0]?.epoch}</span>, for ${sealedForView(state, call)}. The same digits on every
      screen mean the same key, sealed for these devices alone; anyone in the call could still pass it on.</p>
  </details>`
}

/** The devices that the key was sealed for: the user's own by name, and the number of each other person's. */
function sealedForView({ user, devices }: State, { sealedFor, participants }: Call): TemplateResult {
  const own = sealedFor.filter(({ userId }) => userId === user?.userId)
  const ownNames = own.map(({ deviceId }) => {
    const device = devices.find(one => one.deviceId === deviceId)
    return device?.current
      ? 'this device'
      : html`your <span dir="auto">${device?.name ?? 'other device'}</span>`
  })
  const others = participants.flatMap(({ userId, name }) => {
    const count = sealedFor.filter(one => one.userId === userId).length
    const whose = html`<span dir="auto">${name}</span>`
    if (count === 0 || userId === user?.userId) return []
    return count === 1 ? html`${whose}’s device` : html`${count} devices of ${whose}`
  })
  const all = [...ownNames, ...others]
  const separatorOf = (at: number) => (at === 0 ? '' : at === all.length - 1 ? ' and ' : ', ')
  return html`<span class="sealed-for">${all.map((one, at) => html`${separatorOf(at)}${one}`)}</span>`
}

function keylessView({ state, callId }: Call, doing: ReadonlySet<string>, app: App): View {
  if (state !== 'keyless') return nothing
  return html`<p class="row"><button class="main" ?disabled=${doing.has('rejoin')}
    @click=${() => app.act('rejoin', () => app.calls.rejoin(callId))}>Ask again</button></p>`
}

function controlsView(state: State, call: Call, app: App): TemplateResult {
  const { media, doing } = state
  const { isMuted, isCameraOff, isSoundOn, local, peers, screen, canShareScreen } = media
  const hasSound = (local?.getAudioTracks().length ?? 0) > 0
  const hasCamera = call.isVideo && media.hasCamera && (hasSound || !isCameraOff)
  const canEnd = call.isHost || call.participants.length === 2
  const isEnding = doing.has('end')
  const end = () => app.act('end', () => call.end())
  const leave = () => app.act('end', () => call.leave())
  return html`<p class="controls">
    ${hasSound ? toggle('Microphone', 'microphone', 'Mic', !isMuted, () => app.calls.media?.mute(!isMuted)) : nothing}
    ${hasCamera ? toggle('Camera', 'camera', 'Camera', !isCameraOff, () => app.calls.media?.coverCamera(!isCameraOff)) : nothing}
    ${canShareScreen ? screenToggle(screen !== undefined, app) : nothing}
    ${peers.length > 0 ? toggle('Sound', 'sound', 'Sound', isSoundOn, () => app.calls.media?.playSound(!isSoundOn)) : nothing}
    ${
      call.state === 'ringing'
        ? wayOut('Cancel the call', 'Cancel', 'hangUp', isEnding, end)
        : html`${wayOut('Leave', 'Leave', 'hangUp', isEnding, leave)}
          ${canEnd ? wayOut('End for all', 'End for all', 'end', isEnding, end) : nothing}`
    }
  </p>`
}

function toggle(name: string, icon: Icon, caption: string, isOn: boolean, act: () => void): TemplateResult {
  return html`<button class="round" aria-pressed=${isOn} aria-label=${name} title=${`Turn the ${name.toLowerCase()} ${isOn ? 'off' : 'on'}`}
    @click=${act}><span class="disc">${iconView(icon, !isOn)}</span><span aria-hidden="true">${caption}</span></button>`
}

/** Off is the usual state. */
function screenToggle(isOn: boolean, app: App): TemplateResult {
  const share = () => app.act('screen', () => app.calls.media?.shareScreen(!isOn))
  return html`<button class="round quiet-off" aria-pressed=${isOn} aria-label="Share the screen" title=${isOn ? 'Stop sharing' : 'Share the screen'}
    @click=${share}><span class="disc">${iconView('screen')}</span><span aria-hidden="true">Screen</span></button>`
}

function wayOut(
  name: string,
  caption: string,
  icon: Icon,
  isWaiting: boolean,
  act: () => void,
): TemplateResult {
  return html`<button class="round out" aria-label=${name} title=${name} ?disabled=${isWaiting} @click=${act}>
    <span class="disc">${iconView(icon)}</span><span aria-hidden="true">${caption}</span></button>`
}

/** The people in the call, and those who can be invited: the one place for people while the call has the window. */
function peopleView(state: State, call: Call, app: App): TemplateResult {
  const { user, doing } = state
  const rowOf = ({ userId, name, state, isUnreachable }: CallMember) => {
    const canRemove = call.isHost && userId !== user?.userId && !GONE.has(state) && call.state === 'active'
    return html`<li>${avatar(name)}<span class="grow name" dir="auto">${name}</span>
      <span class="quiet">${userId === call.hostUserId ? 'host, ' : ''}${isUnreachable ? 'can’t be reached now' : STATES[state]}</span>
      ${
        canRemove
          ? html`<button class="plain bad" ?disabled=${doing.has('remove')} aria-label=${`Remove ${name}`}
            @click=${() => app.act('remove', () => call.remove(userId))}>Remove</button>`
          : nothing
      }</li>`
  }
  return html`<details class="menu people-panel">
    <summary title="Who is in the call">${iconView('people')} ${call.participants.length} people</summary>
    <div class="card">
      <ul class="list" aria-live="polite">${repeat(call.participants, ({ userId }) => userId, rowOf)}</ul>
      ${
        call.isHost && call.state === 'active'
          ? html`<button class="plain" ?disabled=${doing.has('new-key')}
            @click=${() => app.act('new-key', () => call.renewKey())}>Make a new key now</button>`
          : nothing
      }
      ${inviteesView(state, call, app)}
    </div>
  </details>`
}

/** Said in the call as well, since it covers the header. */
function connectionView({ connection }: State): View {
  return connection === 'connected' ? nothing : html`<p class="bad">${CONNECTIONS[connection]}</p>`
}

const GONE: ReadonlySet<string> = new Set(['left', 'lost', 'declined', 'busy', 'missed', 'removed'])
const STATES: Readonly<Record<CallParticipant['state'], string>> = {
  invited: 'called',
  ringing: 'ringing',
  joined: 'here',
  left: 'left',
  lost: 'connection lost',
  declined: 'declined',
  busy: 'busy',
  missed: 'no answer',
  removed: 'removed',
}
/** The name beside a feed that the server does not vouch for. */
const UNKNOWN = { name: 'Somebody unknown' }
const LINK_STATES: Readonly<Record<MediaPeer['state'], string>> = {
  connecting: 'connecting',
  connected: 'connected',
  weak: 'weak connection',
  interrupted: 'connection lost',
  gone: 'gone',
  unreachable: 'no way to each other: a relay may be needed',
  undecryptable: 'cannot be decrypted: the key is missing',
}
/** The grid has columns for so many; more make further rows. */
const TILES_MAX = 8

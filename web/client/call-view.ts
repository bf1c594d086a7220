/** The call that this tab is in: pictures, the key's digits, who is there, and the way out. */

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { App } from './app.ts'
import { serverNowMs } from './server-clock.ts'
import type { Call, MediaPeer, MediaView, Participant, State } from './state.ts'
import type { View } from './view.ts'
import { avatar, durationText, namesText } from './view-parts.ts'

export function callView(state: State, call: Call, app: App): TemplateResult {
  const others = call.participants.filter(({ userId }) => userId !== state.user?.userId)
  const present = others.filter(({ state }) => !GONE.has(state))
  const names = (present.length > 0 ? present : others).map(({ displayName }) => displayName)
  return html`<section class="card call" aria-label="The call">
    <header class="call-head">
      <h2>${namesText(names)}</h2>
      <p class="quiet" role="status">${statusText(call, others)}</p>
    </header>
    ${picturesView(state, call)}
    <div class="call-side">
      ${keylessView(call, state.doing, app)} ${fingerprintView(call)} ${mediaText(state)}
      ${controlsView(state, call, app)} ${participantsView(state, call, app)}
    </div>
  </section>`
}

function statusText({ phase, startedAtMs, isVideo }: Call, others: readonly Participant[]): string {
  switch (phase) {
    case 'asking':
      return 'Coming back: asking the others for the key …'
    case 'keyless':
      return 'Nobody has given the key.'
    case 'ringing':
      return others.some(({ state }) => state === 'ringing') ? 'Ringing …' : 'Calling …'
    case 'active':
      if (!others.some(({ state }) => state === 'joined')) return 'Nobody else is here now.'
      return `${isVideo ? 'Video' : 'Audio'} call, ${durationText((serverNowMs() - (startedAtMs ?? serverNowMs())) / 1000)}`
  }
}

function picturesView({ media, user }: State, { participants }: Call): View {
  const { local, peers, isSoundOn, isCameraOff } = media
  const hasOwn = local !== undefined && local.getVideoTracks().length > 0 && !isCameraOff
  return html`<div class="pictures count${Math.min(peers.length, 4)}">
      ${peers.map(peer => peerView(peer, participants, isSoundOn))}
      ${
        hasOwn
          ? html`<video class="own" aria-label="Your camera" data-stream="own" .muted=${true} autoplay playsinline></video>`
          : nothing
      }
      ${peers.length === 0 && !hasOwn && user !== undefined ? html`<div class="tile">${avatar(user)}</div>` : nothing}
    </div>`
}

/** What is to be known of picture and sound. */
function mediaText({ media: { problem, peers, isSoundOn } }: State): View {
  const isSilent = peers.length > 0 && !isSoundOn
  return html`${problem === undefined ? nothing : html`<p class="quiet">${problem}</p>`}
    ${isSilent ? html`<p class="quiet">Sound is off: two tabs of one computer would hear each other.</p>` : nothing}`
}

function peerView(
  { userId, state, stream }: MediaPeer,
  participants: readonly Participant[],
  isSoundOn: boolean,
) {
  const displayName = participants.find(one => one.userId === userId)?.displayName ?? '…'
  const hasPicture = stream !== undefined && stream.getVideoTracks().length > 0
  return html`<figure class="tile">
    ${hasPicture ? nothing : avatar({ displayName })}
    ${
      stream === undefined
        ? nothing
        : html`<video class=${hasPicture ? 'remote' : 'sound'} aria-label=${`${displayName}’s camera`}
          data-stream=${userId} .muted=${!isSoundOn} autoplay playsinline></video>`
    }
    <figcaption>${displayName}${state === 'connected' ? nothing : html` · ${LINK_STATES[state]}`}</figcaption>
  </figure>`
}

/**
 * Gives the pictures that were drawn their streams, and plays them; `onSilence` hears that the browser plays no sound
 * before the page is touched. A template would set each stream anew whenever the page is drawn, and one that is set
 * starts over.
 */
export function playStreams(root: ParentNode, { local, peers }: MediaView, onSilence: () => void): void {
  for (const video of root.querySelectorAll<HTMLVideoElement>('video[data-stream]')) {
    const { stream: of } = video.dataset
    const stream = of === 'own' ? local : peers.find(({ userId }) => userId === of)?.stream
    if (stream === undefined) continue
    if (video.srcObject !== stream) video.srcObject = stream
    if (!video.paused) continue
    video.play().catch((error: unknown) => {
      if (error instanceof DOMException && error.name === 'NotAllowedError' && !video.muted) onSilence()
    })
  }
}

function fingerprintView({ fingerprint, keyEpoch }: Call): View {
  if (fingerprint === undefined) return nothing
  return html`<div class="fingerprint">
    <p class="digits mono" aria-label="Fingerprint of the call’s key">${fingerprint}</p>
    <p class="quiet">The others see the same digits when they have the same key. Key <span class="epoch">${keyEpoch}</span> of this call.</p>
  </div>`
}

function keylessView({ phase, callId }: Call, doing: ReadonlySet<string>, app: App): View {
  if (phase !== 'keyless') return nothing
  return html`<p class="row"><button class="main" ?disabled=${doing.has('rejoin')}
    @click=${() => app.act('rejoin', () => app.calls.rejoin(callId))}>Ask again</button></p>`
}

function controlsView(state: State, call: Call, app: App): TemplateResult {
  const { media, doing, user } = state
  const { isMuted, isCameraOff, isSoundOn, local, peers } = media
  const hasSound = (local?.getAudioTracks().length ?? 0) > 0
  const hasCamera = (local?.getVideoTracks().length ?? 0) > 0
  const canEnd = call.hostUserId === user?.userId || call.participants.length === 2
  const isEnding = doing.has('end')
  const end = () => app.act('end', () => app.calls.end())
  return html`<p class="controls row">
    ${hasSound ? toggle('Microphone', !isMuted, () => app.calls.media.mute(!isMuted)) : nothing}
    ${hasCamera ? toggle('Camera', !isCameraOff, () => app.calls.media.coverCamera(!isCameraOff)) : nothing}
    ${peers.length > 0 ? toggle('Sound', isSoundOn, () => app.calls.media.playSound(!isSoundOn)) : nothing}
    <span class="grow"></span>
    ${
      call.phase === 'ringing'
        ? html`<button class="bad" ?disabled=${isEnding} @click=${end}>Cancel the call</button>`
        : html`<button ?disabled=${isEnding} @click=${() => app.act('end', () => app.calls.leave())}>Leave</button>
          ${canEnd ? html`<button class="bad" ?disabled=${isEnding} @click=${end}>End for all</button>` : nothing}`
    }
  </p>`
}

function toggle(name: string, isOn: boolean, act: () => void): TemplateResult {
  return html`<button class="toggle" aria-pressed=${isOn} @click=${act}>${name} ${isOn ? 'on' : 'off'}</button>`
}

function participantsView({ user, doing }: State, call: Call, app: App): TemplateResult {
  const isHost = call.hostUserId === user?.userId
  const rowOf = (participant: Participant) => {
    const { userId, displayName, state } = participant
    const canRemove = isHost && userId !== user?.userId && !GONE.has(state) && call.phase === 'active'
    return html`<li>${avatar(participant)}<span class="grow name" dir="auto">${displayName}</span>
      <span class="quiet">${userId === call.hostUserId ? 'host, ' : ''}${STATES[state]}</span>
      ${
        canRemove
          ? html`<button class="plain bad" ?disabled=${doing.has('remove')} aria-label=${`Remove ${displayName}`}
            @click=${() => app.act('remove', () => app.calls.remove(userId))}>Remove</button>`
          : nothing
      }</li>`
  }
  return html`<details class="participants" ?open=${call.participants.length > 2}>
    <summary>${call.participants.length} people</summary>
    <ul class="list" aria-live="polite">${repeat(call.participants, ({ userId }) => userId, rowOf)}</ul>
    ${
      isHost && call.phase === 'active'
        ? html`<button class="plain" ?disabled=${doing.has('new-key')}
          @click=${() => app.act('new-key', () => app.calls.renewKey())}>Make a new key now</button>`
        : nothing
    }
  </details>`
}

const GONE: ReadonlySet<string> = new Set(['left', 'lost', 'declined', 'busy', 'missed', 'removed'])
const STATES: Readonly<Record<Participant['state'], string>> = {
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
const LINK_STATES: Readonly<Record<RTCPeerConnectionState, string>> = {
  new: 'connecting',
  connecting: 'connecting',
  connected: 'connected',
  disconnected: 'connection lost',
  failed: 'no way to each other: a relay may be needed',
  closed: 'gone',
}

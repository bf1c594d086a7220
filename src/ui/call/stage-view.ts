/**
 * The stage of a call: tiles in their grid. It places them by numbers, since a style sheet can't pick the columns; by `.style`, for
 * a page's policy may refuse style attributes.
 */

import { html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import { avatarView } from '../avatar.ts'
import type { View } from '../element.ts'
import { word } from '../words.ts'
import { iconView } from './icons.ts'
import type { Scene, Tile } from './scene.ts'
import { gridOf, TILE_GAP } from './tile-grid.ts'

export interface Size {
  readonly width: number
  readonly height: number
}

export function stageView(
  { screens, people, floating }: Scene,
  stage: Size,
  isSoundOn: boolean,
): TemplateResult {
  const isBeside = stage.width > stage.height
  const strip = screens.length === 0 ? stage : stripOf(stage, isBeside)
  return html`<div class="stage ${isBeside ? 'beside' : 'below'}" role="group" aria-label=${word('call-pictures')}>
    ${screens.length === 0 ? nothing : gridView(screens, restOf(stage, strip, isBeside), isSoundOn)}
    ${gridView(people, strip, isSoundOn)}
    ${floating === undefined ? nothing : tileView(floating, 'floating', isSoundOn)}
  </div>`
}

/** People beside a screen, or below it on a tall stage. */
function stripOf({ width, height }: Size, isBeside: boolean): Size {
  return isBeside
    ? { width: clamp(width * 0.22, 120, 320), height }
    : { width, height: clamp(height * 0.28, 90, 220) }
}

function restOf({ width, height }: Size, strip: Size, isBeside: boolean): Size {
  return isBeside
    ? { width: width - strip.width - TILE_GAP, height }
    : { width, height: height - strip.height - TILE_GAP }
}

function gridView(tiles: readonly Tile[], { width, height }: Size, isSoundOn: boolean): TemplateResult {
  // A single tile has the whole place, whatever its shape.
  const { columns, tileWidth, tileHeight } =
    tiles.length === 1
      ? { columns: 1, tileWidth: width, tileHeight: height }
      : gridOf(tiles.length, width, height)
  const rowWidth = columns * tileWidth + (columns - 1) * TILE_GAP
  return html`<div class="place" .style=${`width:${width}px;height:${height}px`}>
    <div class="grid" .style=${`width:${rowWidth}px;--tile-width:${tileWidth}px;--tile-height:${tileHeight}px`}>
      ${repeat(
        tiles,
        ({ key }) => key,
        tile => tileView(tile, tile.kind, isSoundOn),
      )}
    </div>
  </div>`
}

function tileView(tile: Tile, className: string, isSoundOn: boolean): TemplateResult {
  const { kind, name, isMuted, isSpeaking, trouble, isWeak, hasPicture } = tile
  return html`<figure class="tile ${className}" ?data-speaking=${isSpeaking}>
    ${hasPicture ? nothing : avatarView(name)} ${videoView(tile, isSoundOn)}
    <figcaption>
      ${isMuted ? iconView('microphone', true) : nothing}${isWeak ? iconView('weak') : nothing}
      <span class="name" dir="auto">${name}</span>
      ${trouble === undefined || kind === 'own' ? nothing : html`<span class="trouble"> · ${trouble}</span>`}
      ${isMuted ? html`<span class="hidden">, ${word('call-microphone-off')}</span>` : nothing}
    </figcaption>
  </figure>`
}

/** A template would set a stream anew at each drawing, which starts it over: the element plays them. */
function videoView({ key, kind, stream, hasPicture, name }: Tile, isSoundOn: boolean): View {
  if (stream === undefined) return nothing
  const label =
    kind === 'screen' ? name : kind === 'own' ? word('call-your-camera') : word('call-camera-of', name)
  return html`<video class=${hasPicture ? 'picture' : 'sound'} aria-label=${label} data-tile=${key}
    .muted=${kind !== 'person' || !isSoundOn} autoplay playsinline></video>`
}

/** Plays what the tiles show; `onSilence` hears that the browser plays no sound before the page is touched. */
export function playTiles(
  root: ParentNode,
  { screens, people, floating }: Scene,
  onSilence: () => void,
): void {
  const tiles = [...screens, ...people, ...(floating === undefined ? [] : [floating])]
  for (const video of root.querySelectorAll<HTMLVideoElement>('video[data-tile]')) {
    const stream = tiles.find(({ key }) => key === video.dataset.tile)?.stream
    if (stream === undefined) continue
    if (stream.kind !== 'own') stream.peer.play(video, stream.kind === 'screen')
    else if (video.srcObject !== stream.local) video.srcObject = stream.local
    video.onresize = () => fitPicture(video)
    fitPicture(video)
    if (video.srcObject === null || !video.paused) continue
    video.play().catch((error: unknown) => {
      if (error instanceof DOMException && error.name === 'NotAllowedError' && !video.muted) onSilence()
    })
  }
}

/** A picture fills its tile, unless the tile would cut half of it away. */
function fitPicture(video: HTMLVideoElement): void {
  const { videoWidth, videoHeight, clientWidth, clientHeight } = video
  if (videoHeight * clientHeight === 0) return
  const [picture, place] = [videoWidth / videoHeight, clientWidth / clientHeight]
  video.classList.toggle('whole', Math.min(picture / place, place / picture) < 0.5)
}

function clamp(value: number, least: number, most: number): number {
  return Math.round(Math.min(most, Math.max(least, value)))
}

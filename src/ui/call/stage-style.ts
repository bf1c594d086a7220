/** The style of a call's stage: tiles, screens and avatars. */

import { css } from 'lit'

export const STAGE_STYLE = css`
  .middle {
    grid-area: middle;
    position: relative;
    min-height: 0;
  }

  .stage {
    position: absolute;
    inset: 0;
    display: flex;
    gap: 8px;
  }

  .stage.below {
    flex-direction: column;
  }

  .place {
    display: grid;
    flex: none;
    place-content: center;
    overflow: hidden;
  }

  .grid {
    display: flex;
    flex-wrap: wrap;
    justify-content: center;
    gap: 8px;
  }

  .tile {
    position: relative;
    display: grid;
    place-items: center;
    width: var(--tile-width);
    height: var(--tile-height);
    margin: 0;
    overflow: hidden;
    container-type: size;
    border-radius: var(--radius);
    background: var(--place);
  }

  .tile.floating {
    position: absolute;
    right: 0.6rem;
    bottom: 0.6rem;
    width: clamp(6rem, 20%, 13rem);
    height: auto;
    aspect-ratio: 4 / 3;
    box-shadow: 0 2px 14px rgb(0 0 0 / 0.5);
  }

  /* The other's name ends before the own tile. */
  .place:has(~ .floating) figcaption {
    max-width: calc(100% - clamp(6rem, 20%, 13rem) - 1.6rem);
  }

  .tile[data-speaking]::after {
    content: "";
    position: absolute;
    inset: 0;
    border: 3px solid var(--good);
    border-radius: inherit;
    pointer-events: none;
  }

  .avatar {
    display: inline-grid;
    flex: none;
    place-items: center;
    width: 2.1rem;
    height: 2.1rem;
    border-radius: 50%;
    font-weight: 600;
    color: light-dark(#fff, #15181a);
  }

  .tile .avatar {
    width: min(7rem, 40cqmin);
    height: auto;
    aspect-ratio: 1;
    font-size: min(2.8rem, 16cqmin);
  }

  .tint0 {
    background: light-dark(#1f6f60, #6cc5b2);
  }

  .tint1 {
    background: light-dark(#7a4a8c, #c7a0d8);
  }

  .tint2 {
    background: light-dark(#a0522d, #e0a37f);
  }

  .tint3 {
    background: light-dark(#33608f, #8fb8e3);
  }

  .tint4 {
    background: light-dark(#6f6a1f, #cfc76c);
  }

  .tint5 {
    background: light-dark(#93405b, #e29bb2);
  }

  .picture {
    position: absolute;
    inset: 0;
    width: 100%;
    height: 100%;
    object-fit: cover;
  }

  .picture.whole,
  .screen .picture {
    object-fit: contain;
  }

  :is(.own, .floating) .picture {
    transform: scaleX(-1);
  }

  .sound {
    position: absolute;
    width: 1px;
    height: 1px;
    opacity: 0;
  }
`

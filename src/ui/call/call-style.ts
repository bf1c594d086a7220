/** The style of a call's page. It goes by the element's own size, so that a page may give it less than the window. */

import { css } from 'lit'

export const CALL_STYLE = css`
  :host {
    position: fixed;
    inset: 0;
    z-index: 2;
    background: var(--ground);
    --place: light-dark(#e6e2d8, #22282b);
    --disc: light-dark(#e6e2d8, #30373b);
  }

  .call {
    container-type: size;
    position: relative;
    width: 100%;
    height: 100%;
    overflow: hidden;
  }

  .page {
    display: grid;
    grid-template: "head" auto "middle" minmax(0, 1fr) "foot" auto / minmax(0, 1fr);
    gap: 0.5rem;
    height: 100%;
    padding: max(0.5rem, env(safe-area-inset-top)) max(0.5rem, env(safe-area-inset-right))
      max(0.5rem, env(safe-area-inset-bottom)) max(0.5rem, env(safe-area-inset-left));
  }

  .head {
    grid-area: head;
    display: flex;
    gap: 0.5rem;
    align-items: center;
    min-height: 48px;
  }

  h2,
  .status {
    margin: 0;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }

  h2 {
    font-size: 1.1rem;
    line-height: 1.3;
  }

  h2:focus {
    outline: none;
  }

  .status {
    font-size: 0.875rem;
  }

  .hidden {
    position: absolute;
    width: 1px;
    height: 1px;
    margin: 0;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }

  .icon {
    flex: none;
    width: 1.5rem;
    height: 1.5rem;
    fill: none;
    stroke: currentcolor;
    stroke-width: 1.8;
    stroke-linecap: round;
    stroke-linejoin: round;
  }

  .pill {
    display: flex;
    gap: 0.4rem;
    align-items: center;
    min-width: 44px;
    padding: 0 0.8rem;
    border: 0;
    border-radius: 22px;
    background: var(--disc);
    white-space: nowrap;
  }

  .pill .icon {
    width: 1.25rem;
    height: 1.25rem;
  }

  .pill.key .icon {
    color: var(--good);
  }

  .inline b {
    font: 0.95rem ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  }

  .inline {
    display: none;
  }

  figcaption {
    position: absolute;
    left: 0.4rem;
    bottom: 0.4rem;
    display: flex;
    align-items: center;
    gap: 0.3rem;
    max-width: calc(100% - 0.8rem);
    padding: 0.1rem 0.5rem;
    border-radius: 6px;
    font-size: 0.85rem;
    color: #fff;
    background: rgb(0 0 0 / 0.65);
  }

  figcaption .icon {
    width: 1rem;
    height: 1rem;
  }

  figcaption .name {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }

  .notes {
    position: absolute;
    inset: 0.5rem 0.5rem auto;
    display: grid;
    justify-items: center;
    gap: 0.5rem;
    max-height: calc(100% - 1rem);
    overflow-y: auto;
    pointer-events: none;
  }

  .notes .card {
    width: min(100%, 30rem);
    margin: 0;
    pointer-events: auto;
    box-shadow: 0 4px 18px rgb(0 0 0 / 0.35);
  }

  .pills {
    display: grid;
    justify-items: center;
    gap: 0.3rem;
  }

  .note,
  .notes .failure {
    margin: 0;
    padding: 0.3rem 0.8rem;
    border: 1px solid var(--line);
    border-radius: 1rem;
    font-size: 0.9rem;
    background: var(--raised);
  }

  .foot {
    grid-area: foot;
  }

  .controls {
    display: flex;
    justify-content: center;
    gap: 0.25rem;
  }

  .round {
    display: grid;
    flex: none;
    justify-items: center;
    gap: 0.15rem;
    width: 4.75rem;
    min-height: 44px;
    padding: 0;
    border: 0;
    background: none;
    font-size: 0.78rem;
    white-space: nowrap;
  }

  .disc {
    display: grid;
    place-items: center;
    width: 3rem;
    height: 3rem;
    border-radius: 50%;
    background: var(--disc);
  }

  .opener .icon {
    stroke-width: 2;
  }

  .round.out .disc,
  dialog .out {
    border-color: transparent;
    color: #fff;
    background: #c2302a;
  }

  .round[aria-pressed="false"]:not(.quiet-off) .disc,
  .round.quiet-off[aria-pressed="true"] .disc,
  .opener[aria-expanded="true"] .disc {
    color: var(--ground);
    background: var(--ink);
  }

  .round:hover:not(:disabled) .disc,
  .pill:hover {
    filter: brightness(1.12);
  }

  .round:focus-visible {
    outline: none;
  }

  .round:focus-visible .disc {
    outline: 2px solid var(--accent);
    outline-offset: 2px;
  }

  .panel {
    position: absolute;
    z-index: 2;
    width: min(24rem, 100% - 1rem);
    padding: 0.9rem;
    overflow-y: auto;
    border: 1px solid var(--line);
    border-radius: var(--radius);
    background: var(--raised);
    box-shadow: 0 6px 24px rgb(0 0 0 / 0.35);
  }

  .panel[hidden] {
    display: none;
  }

  .panel.high {
    top: 3.9rem;
    right: 0.5rem;
    max-height: calc(100% - 4.4rem);
  }

  .panel.low {
    bottom: 5.4rem;
    left: 50%;
    max-height: calc(100% - 6rem);
    translate: -50% 0;
  }

  .panel .list + h3 {
    margin-top: 0.75rem;
  }

  .panel .name {
    overflow-wrap: anywhere;
  }

  .item {
    display: flex;
    gap: 0.6rem;
    align-items: center;
    width: 100%;
    border-color: transparent;
    text-align: start;
    background: none;
  }

  .item:hover {
    background: var(--disc);
  }

  .wide {
    display: none;
  }

  dialog {
    width: min(24rem, 100% - 2rem);
    color: inherit;
  }

  dialog::backdrop {
    background: rgb(0 0 0 / 0.5);
  }

  @container (max-width: 32rem) {
    .round {
      flex: 1 1 44px;
      width: auto;
      max-width: 4.75rem;
    }

    .unit {
      position: absolute;
      width: 1px;
      height: 1px;
      overflow: hidden;
      clip-path: inset(50%);
    }
  }

  @container (max-width: 23rem) {
    .caption {
      display: none;
    }
  }

  @container (min-width: 32.01rem) and (min-height: 30rem) {
    .wide {
      display: block;
    }

    .narrow {
      display: none;
    }
  }

  @container (min-width: 64rem) {
    .inline {
      display: inline;
    }
  }

  /* A phone on its side: every pixel of height is for the tiles. */
  @container (max-height: 29.99rem) and (orientation: landscape) {
    .page {
      grid-template: "head foot" auto "middle foot" minmax(0, 1fr) / minmax(0, 1fr) auto;
    }

    .foot {
      display: grid;
      align-content: center;
    }

    .controls {
      flex-direction: column;
    }

    .round {
      width: 3.5rem;
    }

    .caption {
      display: none;
    }

    .panel.low {
      bottom: 0.5rem;
      left: auto;
      right: 4.75rem;
      max-height: calc(100% - 1rem);
      translate: none;
    }

    .panel.high {
      right: 4.75rem;
    }
  }
`

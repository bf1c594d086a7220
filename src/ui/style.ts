/** The style that all elements share. Apps set the `--callsign-…` properties on the page, and reach parts by `::part`. */

import { css } from 'lit'

export const SHARED_STYLE = css`
  :host {
    --ground: var(--callsign-ground, light-dark(#fbfaf7, #15181a));
    --raised: var(--callsign-raised, light-dark(#ffffff, #1d2124));
    --line: var(--callsign-line, light-dark(#dcd8ce, #343a3e));
    --ink: var(--callsign-ink, light-dark(#1c2326, #e6e8e6));
    --soft: var(--callsign-soft, light-dark(#5a6467, #9aa5a8));
    --accent: var(--callsign-accent, light-dark(#1f6f60, #6cc5b2));
    --good: var(--callsign-good, light-dark(#23713a, #74cf8c));
    --bad: var(--callsign-bad, light-dark(#a92c22, #ff8f83));
    --radius: var(--callsign-radius, 10px);
    display: block;
    color: var(--ink);
    font: inherit;
  }

  :host([hidden]) {
    display: none;
  }

  *,
  ::before,
  ::after {
    box-sizing: border-box;
  }

  .card {
    background: var(--raised);
    border: 1px solid var(--line);
    border-radius: var(--radius);
    padding: 1rem;
  }

  .card + .card {
    margin-top: 1rem;
  }

  .attention {
    border-color: var(--accent);
  }

  h2,
  h3 {
    margin: 0 0 0.5rem;
    font-size: 1.05rem;
  }

  p {
    margin: 0 0 0.75rem;
  }

  p:last-child,
  p:has(+ div:empty:last-child) {
    margin-bottom: 0;
  }

  .row {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem;
    align-items: center;
  }

  .quiet {
    color: var(--soft);
  }

  .good {
    color: var(--good);
  }

  .bad,
  .failure {
    color: var(--bad);
  }

  button,
  input,
  select,
  summary,
  .button {
    font: inherit;
    color: inherit;
    min-height: 44px;
  }

  button,
  input,
  select,
  .button {
    background: var(--raised);
    border: 1px solid var(--line);
    border-radius: 8px;
    padding: 0 0.9rem;
  }

  button,
  summary,
  .button {
    cursor: pointer;
  }

  button:disabled {
    opacity: 0.5;
    cursor: default;
  }

  button.main {
    background: var(--accent);
    border-color: var(--accent);
    color: var(--ground);
  }

  button.plain {
    background: none;
    border-color: transparent;
  }

  .list {
    list-style: none;
    margin: 0;
    padding: 0;
  }

  .list > li {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 0.6rem;
    padding: 0.4rem 0;
  }

  .grow {
    flex: 1;
    min-width: 0;
  }

  .digits {
    font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
    font-size: 1.1em;
    letter-spacing: 0.04em;
    overflow-wrap: anywhere;
  }

  :focus-visible {
    outline: 2px solid var(--accent);
    outline-offset: 2px;
  }
`

/** Signs on the buttons and tiles of a call, drawn with lines on a field of 24 by 24. */

import { html, nothing, svg, type TemplateResult } from 'lit'

export type Icon = keyof typeof PATHS

/** A sign; `isOff` strikes it through. */
export function iconView(icon: Icon, isOff = false): TemplateResult {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    ${svg`<path d=${PATHS[icon]}></path>`}${isOff ? svg`<path d="M3 3l18 18"></path>` : nothing}
  </svg>`
}

const PATHS = {
  microphone: 'M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3zM6 11a6 6 0 0 0 12 0M12 17v4M9 21h6',
  camera:
    'M3 7.5A1.5 1.5 0 0 1 4.5 6h9A1.5 1.5 0 0 1 15 7.5v9a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 3 16.5zM15 11l6-3.5v9L15 13',
  sound: 'M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM15.5 9a4 4 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11',
  screen: 'M4 5h16v11H4zM9 20h6M12 16v4M12 13V8M9.5 10L12 7.5 14.5 10',
  devices: 'M4 7h9M17 7h3M15 5v4M4 12h3M11 12h9M9 10v4M4 17h11M19 17h1M17 15v4',
  more: 'M5 11.5h1v1H5zM11.5 11.5h1v1h-1zM18 11.5h1v1h-1z',
  hangUp:
    'M3 15.5c-.6-1.6-.6-3.4 1-4.6 4.6-3.4 11.4-3.4 16 0 1.6 1.2 1.6 3 1 4.6l-4.5-1.2-.4-2.8a11 11 0 0 0-8.2 0l-.4 2.8z',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20a6 6 0 0 1 12 0M16 4.5a3.5 3.5 0 0 1 0 6.3M17.5 14.3A6 6 0 0 1 21 20',
  shield: 'M12 3l7 3v5c0 4.5-3 8-7 10-4-2-7-5.5-7-10V6zM9 12l2.2 2.2L15.5 10',
  key: 'M14.5 9.5a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM13.2 12.7L20 19.5M17 16.5l2.2-2.2',
  weak: 'M5 19v-3M10 19v-6M15 19V9M20 19V5M3 3l18 18',
} as const

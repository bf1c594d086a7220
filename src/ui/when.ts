/** Times as people read them. */

import { html, type TemplateResult } from 'lit'

/** The time of today; of an earlier day that, too. */
export function whenText(at: Date): string {
  const language = languageOfTimes()
  const time = { hour: '2-digit', minute: '2-digit' } as const
  if (at.toDateString() === new Date().toDateString()) return at.toLocaleTimeString(language, time)
  const day = { month: 'short', day: 'numeric', ...time } as const
  if (at.getFullYear() === new Date().getFullYear()) return at.toLocaleString(language, day)
  return at.toLocaleString(language, { year: 'numeric', ...day })
}

export function timeView(at: string): TemplateResult {
  return html`<time datetime=${at}>${whenText(new Date(at))}</time>`
}

/** The browser's own, such as `en-GB`, where it is one of the page's language. */
function languageOfTimes(): string {
  const { lang } = document.documentElement
  const [page] = lang.split('-')
  return navigator.languages.find(language => page === '' || language.split('-')[0] === page) ?? lang
}

/** The first letter of a name, in one of six colours that goes with it. */

import { html, type TemplateResult } from 'lit'

export function avatarView(name: string): TemplateResult {
  const [first] = new Intl.Segmenter().segment(name)
  const letter = first?.segment.toUpperCase() ?? '?'
  return html`<span class="avatar tint${letter.codePointAt(0)! % 6}" aria-hidden="true">${letter}</span>`
}

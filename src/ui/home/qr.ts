/** A text as a QR code. */

import { html, svg, type TemplateResult } from 'lit'
import { encodeQR } from 'qr'

/** `label` says what it is of. */
export function qrView(text: string, label: string): TemplateResult {
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_MODULES })
  const path = rows
    .flatMap((row, y) => row.map((isBlack, x) => (isBlack ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
  return html`<svg class="qr" role="img" aria-label=${label} shape-rendering="crispEdges"
    viewBox=${`0 0 ${rows.length} ${rows.length}`}>${svg`<path d=${path}></path>`}</svg>`
}

/** The white border that ISO/IEC 18004 asks for. */
const QUIET_MODULES = 4

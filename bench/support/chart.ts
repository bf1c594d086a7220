/**
 * A plain SVG of how much of its limit the project reaches, and how much of it others do: a bar for each row that counts
 * work in a time, up to the limit as 100 %.
 */

import { formatFigure, type Summary } from './summary.ts'

/** Empty when no row can be drawn. */
export function drawChart(summaries: readonly Summary[]): string {
  const rows = summaries.filter(({ row }) => row.unit.endsWith('/s') && row.goal?.of === 'ratio')
  if (rows.length === 0) return ''
  const drawn: string[] = []
  let y = TOP
  for (const summary of rows) {
    drawn.push(drawRow(summary, y))
    y += LABEL_HEIGHT + BAR_HEIGHT * (1 + summary.peers.size) + GAP
  }
  const height = y + BOTTOM
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="13">
<title>Callsign beside its limits</title>
<style>${STYLE}</style>
${[0, 25, 50, 75, 100].map(percent => drawAxis(percent, y)).join('\n')}
${drawn.join('\n')}
</svg>
`
}

function drawRow(summary: Summary, y: number): string {
  const { row, size, limit, project, peers } = summary
  const name = size === '' ? row.project : `${row.project}, ${size}`
  const bars = [...new Map([['Callsign', project], ...peers])]
  const drawn = bars.map(([who, figure], at) => {
    const top = y + LABEL_HEIGHT + at * BAR_HEIGHT
    const width = Math.round(Math.min(1, figure / limit) * SCALE)
    const words = `${who} ${formatFigure(figure, row.unit)}, ${Math.round((figure / limit) * 100)} %`
    return `<rect class="${at === 0 ? 'project' : 'peer'}" x="${LEFT}" y="${top}" width="${width}" height="${BAR_HEIGHT - 4}" rx="2"/>
<text class="figure" x="${LEFT + width + 6}" y="${top + BAR_HEIGHT - 7}">${escapeText(words)}</text>`
  })
  const beside = `limit: ${summary.limitName}, ${formatFigure(limit, row.unit)}`
  return `<text x="${LEFT}" y="${y + 14}">${escapeText(name)}</text>
<text class="figure" x="${LEFT}" y="${y + 31}">${escapeText(beside)}</text>
${drawn.join('\n')}`
}

function drawAxis(percent: number, bottom: number): string {
  const x = LEFT + (percent / 100) * SCALE
  return `<line x1="${x}" x2="${x}" y1="${TOP - 8}" y2="${bottom}"/>
<text class="figure" x="${x}" y="${bottom + 16}" text-anchor="middle">${percent === 100 ? 'the limit' : `${percent} %`}</text>`
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

const WIDTH = 900
const LEFT = 16
/** Pixels for the limit; what follows a bar needs the rest. */
const SCALE = 620
const TOP = 20
const BOTTOM = 28
const LABEL_HEIGHT = 38
const BAR_HEIGHT = 20
const GAP = 14
const STYLE = `text{fill:#1c2326}.figure{fill:#5a6467;font-size:12px}line{stroke:#dcd8ce}.project{fill:#1f6f60}.peer{fill:#b9b3a4}
@media (prefers-color-scheme:dark){text{fill:#e6e8e6}.figure{fill:#9aa5a8}line{stroke:#343a3e}.project{fill:#6cc5b2}.peer{fill:#5d6468}}`

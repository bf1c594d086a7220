/**
 * The right edge of the Merkle tree as a drawing: the perfect subtrees that the size consists of (RFC 6962), largest
 * first, and the nodes above them that lead to the root. Heights are those of the tree; widths only tell larger from
 * smaller.
 */

import { html, nothing, svg, type TemplateResult } from 'lit-html'
import { type Node, rootNodes } from '../../src/log/tree.ts'
import { countOf } from '../shared/figures.ts'

interface Subtree extends Node {
  readonly leaves: number
  readonly left: number
  readonly width: number
}

/** `width` in pixels is what there is for it. */
export function treeDrawing(treeSize: number, width: number): TemplateResult | typeof nothing {
  if (treeSize === 0) return nothing
  const subtrees = placed(rootNodes(treeSize), width)
  const levels = subtrees[0]!.level + (subtrees.length > 1 ? 1 : 0)
  const levelHeight = Math.min(LEVEL_HEIGHT, HEIGHT_MAX / Math.max(1, levels))
  const ground = MARGIN + levels * levelHeight
  const heightOf = (level: number) => ground - level * levelHeight
  const description = `tree of size ${treeSize}: perfect subtrees of ${subtrees.map(({ leaves }) => leaves).join(', ')}`
  return html`<svg class="tree" role="img" aria-label=${description} width=${width} height=${ground + FOOT}
    viewBox="0 0 ${width} ${ground + FOOT}">
    ${spine(subtrees, heightOf)}
    ${subtrees.map((subtree, at) => triangle(subtree, heightOf, at === subtrees.length - 1))}
  </svg>`
}

/** Side by side, with a width for each level, narrowed where there is no room. */
function placed(nodes: readonly Node[], width: number): readonly Subtree[] {
  const widths = nodes.map(({ level }) =>
    level < WIDTHS.length ? WIDTHS[level]! : WIDTHS.at(-1)! + level * 4,
  )
  const room = width - 2 * MARGIN - GAP * (nodes.length - 1)
  const scale = Math.min(1, room / widths.reduce((sum, each) => sum + each, 0))
  let left = MARGIN
  return nodes.map(({ level, index }, at) => {
    const subtree = { level, index, leaves: 2 ** level, left, width: widths[at]! * scale }
    left += subtree.width + GAP
    return subtree
  })
}

/** The nodes that join the subtrees: the root is the parent of the first subtree and of all that is right of it. */
function spine(subtrees: readonly Subtree[], heightOf: (level: number) => number) {
  const parents = subtrees.slice(0, -1).map(({ level, left, width }, at) => {
    const next = subtrees[at + 1]!
    return { x: (left + width + next.left) / 2, y: heightOf(level + 1) }
  })
  return parents.map(({ x, y }, at) => {
    const subtree = subtrees[at]!
    const right = parents[at + 1] ?? apexOf(subtrees[at + 1]!, heightOf)
    const left = apexOf(subtree, heightOf)
    return svg`<path class="branch" d="M${left.x} ${left.y}L${x} ${y}L${right.x} ${right.y}"></path>
      <circle class=${at === 0 ? 'root' : 'joint'} cx=${x} cy=${y} r=${at === 0 ? 4 : 2.5}></circle>`
  })
}

function triangle(subtree: Subtree, heightOf: (level: number) => number, isLast: boolean) {
  const { level, leaves, left, width, index } = subtree
  const { x, y } = apexOf(subtree, heightOf)
  const ground = heightOf(0)
  const fill = level >= 8 ? 'full' : isLast ? 'edge' : 'some'
  const label = countOf(leaves)
  return svg`<g class="subtree ${fill}">
    <title>${label} from leaf ${countOf(index * leaves)} on</title>
    ${level === 0 ? nothing : svg`<path d="M${x} ${y}L${left} ${ground}H${left + width}Z"></path>`}
    ${level > DOTTED_LEVEL ? nothing : leafDots(subtree, ground)}
    ${level === 0 ? nothing : svg`<circle cx=${x} cy=${y} r="2.5"></circle>`}
    ${width >= label.length * 6 || level === 0 ? svg`<text x=${x} y=${ground + 18}>${label}</text>` : nothing}
  </g>`
}

function leafDots({ leaves, left, width }: Subtree, ground: number) {
  if (leaves === 1) return svg`<circle cx=${left + width / 2} cy=${ground} r="3"></circle>`
  const step = width / (leaves - 1)
  return Array.from(
    { length: leaves },
    (_, at) => svg`<circle cx=${left + at * step} cy=${ground} r="2"></circle>`,
  )
}

function apexOf({ level, left, width }: Subtree, heightOf: (level: number) => number) {
  return { x: left + width / 2, y: heightOf(level) }
}

const MARGIN = 8
const FOOT = 24
const GAP = 12
const LEVEL_HEIGHT = 18
const HEIGHT_MAX = 150
/** By level: 8 pixels for each leaf as long as leaves are drawn, then little more for each doubling. */
const WIDTHS = [10, 16, 32, 60, 96]
const DOTTED_LEVEL = 4

/** The auditor's page for people: green or red, with the last checks and their time. Plain HTML that needs no script. */

import { encodeBase64 } from '../../src/log/base64.ts'
import type { AuditView } from './auditor.ts'
import type { AuditRound } from './checks.ts'
import type { Finding } from './finding.ts'

/** `vkey` is the auditor's own. */
export function statusPage(view: AuditView, { vkey, nowMs }: { vkey: string; nowMs: number }): string {
  const { colour, title, sentence } = judge(view, nowMs)
  const { held, round, evidence } = view
  const tree =
    held === undefined
      ? ''
      : `<p>Newest tree that holds: size ${held.treeSize}, root <code>${encodeBase64(held.rootHash)}</code>.</p>`
  const indexed =
    view.index === undefined
      ? ''
      : `<p>Its index is <b>${escapeHtml(view.index.origin)}</b>: ${view.index.leaves} leaves have the root of the map, rebuilt from ${view.index.entries} entries.</p>`
  const links = evidence.map((_, at) => `<a href="evidence/${at}">${at + 1}</a>`).join(' ')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="60">
<title>${title}: ${escapeHtml(view.origin)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem }
h1 { background: ${colour}; color: #fff; padding: 1rem }
td { border-top: 1px solid #ccc; padding: .2rem .5rem; vertical-align: top }
code, td { overflow-wrap: anywhere }
</style>
<h1>${title}</h1>
<p>${escapeHtml(sentence)}</p>
<p>The log is <b>${escapeHtml(view.origin)}</b> at ${escapeHtml(view.url)}.</p>
${tree}
${indexed}
${evidence.length === 0 ? '' : `<p>Evidence: ${links}. <code>callsign-audit explain FILE</code> says what each file proves.</p>`}
${round === undefined ? '' : checksTable(round)}
<p>This page was made at ${timeOf(nowMs)}. The auditor signs its answers as <code>${escapeHtml(vkey)}</code>.</p>
</html>
`
}

interface Judged {
  readonly colour: string
  readonly title: 'Green' | 'Red' | 'Alarm' | 'Waiting' | 'Not checked'
  readonly sentence: string
}

function judge({ round, evidence }: AuditView, nowMs: number): Judged {
  if (evidence.length > 0) {
    const sentence = 'The log, or its index, signed what cannot be so. The evidence is below.'
    return { colour: RED, title: 'Red', sentence }
  }
  if (round === undefined)
    return { colour: AMBER, title: 'Not checked', sentence: 'The first check has not ended.' }
  const at = timeOf(round.endedAtMs)
  if (round.verdict === 1) return { colour: RED, title: 'Red', sentence: `At ${at} a check failed.` }
  if (round.alarm !== undefined)
    return { colour: AMBER, title: 'Alarm', sentence: `At ${at}: ${round.alarm}. ${NOTHING_PROVEN}` }
  if (round.verdict === 3) {
    const sentence = `At ${at} the log showed an older tree than it has signed, or not all of it. ${NOTHING_PROVEN}`
    return { colour: AMBER, title: 'Waiting', sentence }
  }
  if (round.verdict === 2)
    return { colour: AMBER, title: 'Not checked', sentence: `At ${at} not everything could be checked.` }
  if (nowMs - round.endedAtMs > AGE_MS_MAX)
    return { colour: AMBER, title: 'Not checked', sentence: `The last check was at ${at}.` }
  return { colour: GREEN, title: 'Green', sentence: `At ${at} everything held.` }
}

function checksTable({ findings, startedAtMs, endedAtMs }: AuditRound): string {
  const rows = findings.map(rowOf).join('')
  return `<h2>Last checked from ${timeOf(startedAtMs)} to ${timeOf(endedAtMs)}</h2>\n<table>\n${rows}</table>`
}

function rowOf({ ok, check, origin, url, detail, pending, alarm }: Finding): string {
  const mark =
    ok === true ? 'holds' : ok === false ? 'FAILED' : alarm ? 'ALARM' : pending ? 'waiting' : 'unknown'
  const where = [origin, url].map(each => (each === undefined ? '' : `${each}: `)).join('')
  return `<tr><td>${mark}<td>${check}<td>${escapeHtml(where + detail)}\n`
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** Details quote servers. */
function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

const NOTHING_PROVEN = 'A late or broken cache does that, too: nothing is proven against the log.'
const GREEN = '#1a7f37'
const RED = '#b42318'
const AMBER = '#8a6100'
/** A first crawl of a large log may take as long; the page then says when the last check was. */
const AGE_MS_MAX = 6 * 3_600_000

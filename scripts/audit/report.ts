/** Prints findings: for a person at a terminal, or as JSON lines for a program. */

import type { Finding } from './finding.ts'

export interface Report {
  finding(finding: Finding): void
  /** How many of so many entries have been read. */
  progress(entries: number, total: number): void
}

/** One line of JSON per finding, with the time; no progress. */
export function jsonReport(write: (text: string) => void): Report {
  return {
    finding(finding) {
      write(`${JSON.stringify({ ...finding, time: new Date().toISOString() })}\n`)
    },
    progress() {},
  }
}

/** A sentence per finding, the evidence in full, and a line that counts entries, now and then, while they are read. */
export function terminalReport(write: (text: string) => void): Report {
  let hasCount = false
  return {
    finding({ check, ok, detail, origin, url, line, index, pending, alarm, notes = [] }) {
      const isNew = check === 'watch' && index !== undefined
      const failed = ok === false ? 'FAILED' : alarm ? 'ALARM' : pending ? 'waiting' : 'unknown'
      const mark = (isNew ? 'NEW' : ok === true ? 'ok' : failed).padEnd(MARK_CHARS)
      const where = url !== undefined ? `${url}: ` : line !== undefined ? `line ${line}: ` : ''
      const whose = origin === undefined ? '' : `${origin}: `
      write(`${hasCount ? CLEAR_LINE : ''}${mark}  ${check.padEnd(CHECK_CHARS)}  ${whose}${where}${detail}\n`)
      hasCount = false
      for (const note of notes) write(`\n${note.replace(/^(?=.)/gm, '    ')}\n`)
    },
    progress(entries, total) {
      if (entries % ENTRIES_PER_COUNT !== 0) return
      write(`${CLEAR_LINE}         ${entries} of ${total} entries`)
      hasCount = true
    },
  }
}

/** A few counts a second at the usual speed. */
const ENTRIES_PER_COUNT = 16_384
const CLEAR_LINE = '\r\u001b[K'
const MARK_CHARS = 'unknown'.length
const CHECK_CHARS = 'consistency'.length

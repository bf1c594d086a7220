/** `--notes FILE`: signed notes and evidence that users of the log have sent, in one file or several. */

import { readFileSync, statSync } from 'node:fs'
import { messageOf } from '../../src/errors.ts'
import { unchecked } from './finding.ts'

export interface GivenNotes {
  readonly notes: readonly string[]
  /** The texts of evidence files. Their notes are in `notes` too. */
  readonly evidence: readonly string[]
}

/**
 * Reads signed notes, one after the other, or JSON: one object, or one on each line, with the notes as `note`, `notes` or
 * `evidence`. Throws `AuditFailure` of the check `notes` for a file that can't be read or has none.
 */
export function readNotesFile(file: string): GivenNotes {
  const text = readText(file)
  const found = text.trimStart().startsWith('{')
    ? notesInJson(file, text)
    : { notes: notesInText(text), evidence: [] }
  if (found.notes.length === 0) throw unchecked('notes', `${file} has no signed note`)
  if (found.notes.length > NOTES_MAX) throw unchecked('notes', `${file} has more than ${NOTES_MAX} notes`)
  return found
}

/** A note ends with its signature lines; text between notes that is none becomes a note that no key has signed. */
function notesInText(text: string): readonly string[] {
  const lines = text.replaceAll('\r\n', '\n').split('\n')
  const notes: string[] = []
  let note = ''
  for (const [at, line] of lines.entries()) {
    if (note !== '' || line !== '') note += `${line}\n`
    const isLast = line.startsWith(SIGNATURE_START) && !lines[at + 1]?.startsWith(SIGNATURE_START)
    if (!isLast) continue
    notes.push(note)
    note = ''
  }
  return note.trim() === '' ? notes : [...notes, note]
}

function notesInJson(file: string, text: string): GivenNotes {
  const objects = textsOfObjects(text).map(each => ({ text: each, value: parseObject(file, each) }))
  return {
    notes: objects.flatMap(({ value }) => [value.notes, value.note, value.evidence].flat().filter(isText)),
    evidence: objects.filter(({ value }) => value.format !== undefined).map(each => each.text),
  }
}

function textsOfObjects(text: string): readonly string[] {
  try {
    JSON.parse(text)
    return [text]
  } catch {
    return text.split('\n').filter(line => line.trim() !== '')
  }
}

function parseObject(file: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Said below, as for other JSON.
  }
  throw unchecked('notes', `${file} has a line that is not a JSON object`)
}

function readText(file: string): string {
  try {
    if (statSync(file).size <= FILE_BYTES_MAX) return readFileSync(file, 'utf8')
  } catch (error) {
    throw unchecked('notes', `${file} can't be read: ${messageOf(error)}`)
  }
  throw unchecked('notes', `${file} is too large`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

const SIGNATURE_START = '\u2014 '
const NOTES_MAX = 10_000
const FILE_BYTES_MAX = 16 * 1024 * 1024

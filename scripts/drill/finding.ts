/** The outcome of one check of a drill, and how it is printed. */

import type { DrillName } from './settings.ts'

export interface Finding {
  readonly check: string
  readonly isOk: boolean
  /** One line, without secrets. */
  readonly detail: string
  /** Measured time, where there is one. */
  readonly seconds?: number
}

export function holds(check: string, detail: string): Finding {
  return { check, isOk: true, detail }
}

export function fails(check: string, detail: string): Finding {
  return { check, isOk: false, detail }
}

/** Fails with the first faults, or holds. */
export function judge(check: string, faults: readonly string[], detail: string): Finding {
  if (faults.length === 0) return holds(check, detail)
  const more = faults.length > FAULTS_SHOWN ? `; ${faults.length - FAULTS_SHOWN} more` : ''
  return fails(check, `${faults.slice(0, FAULTS_SHOWN).join('; ')}${more}`)
}

/** Holds when it took at most `boundMs`. */
export function judgeTime(check: string, ms: number, boundMs: number, what: string): Finding {
  const seconds = Math.max(0, Math.round(ms / 100) / 10)
  const detail = `${what} after ${seconds} s, at most ${boundMs / 1_000} s`
  return { check, isOk: ms <= boundMs, detail, seconds }
}

export function secondsOf(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}

export function formatFinding(drill: DrillName, { check, isOk, detail }: Finding): string {
  const state = isOk ? 'ok' : 'fails'
  return `${state.padEnd(6)} ${TITLES[drill].padEnd(TITLE_CHARS)} ${check.padEnd(CHECK_CHARS)} ${detail}\n`
}

export function formatJson(drill: DrillName, { check, isOk, detail, seconds }: Finding): string {
  return `${JSON.stringify({ drill, check, ok: isOk, detail, seconds })}\n`
}

const TITLES: Readonly<Record<DrillName, string>> = {
  writer: 'writer killed',
  other: 'another node killed',
  stop: 'writer stopped',
  pause: 'writer paused',
  slow: 'slow link',
  'cut-in': 'nothing comes in',
  'cut-out': 'nothing goes out',
  postgres: 'PostgreSQL restarted',
  promote: 'standby promoted',
}
const TITLE_CHARS = Math.max(...Object.values(TITLES).map(({ length }) => length))
const CHECK_CHARS = 'first change'.length
const FAULTS_SHOWN = 3

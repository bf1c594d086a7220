/** How long the server keeps closed reports and audit rows. */

import type { EnvironmentReader } from './environment.ts'

export interface RetentionSettings {
  /** For closed reports. */
  readonly reportsDays: number
  readonly auditDays: number
}

export function readRetention(reader: EnvironmentReader): RetentionSettings {
  const days = (name: string, usual: number) =>
    reader.integer(name, { usual, min: 1, max: 3_650, unit: 'days' })
  return { reportsDays: days('CALLSIGN_REPORTS_DAYS', 180), auditDays: days('CALLSIGN_AUDIT_DAYS', 365) }
}

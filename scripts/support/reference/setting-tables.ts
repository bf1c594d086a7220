/** Settings with what they take, their defaults and meanings, and the rates of `CALLSIGN_RATES`. */

import { RATE_FACTOR_MAX, USUAL_RATES } from '../../../src/domain/rates.ts'
import { listSettings } from '../../../src/server/settings/config.ts'
import { table } from './markdown-table.ts'
import { MEANINGS } from './setting-meanings.ts'

/** For `docs/reference/settings.md`. */
export function settingTables(): Readonly<Record<string, string>> {
  const usualOf = new Map(listSettings().map(({ name, usual }) => [name, usual]))
  const rows = MEANINGS.map(({ names, says }) => {
    const defaults = new Set(names.map(name => usualOf.get(name) ?? ''))
    return [names.map(name => `\`${name}\``).join(', '), [...defaults].join('; '), says]
  })
  return {
    meanings: table(['Variable', 'Default', 'Meaning'], rows),
    values: `\`\`\`text\n${settingReference()}\`\`\`\n`,
  }
}

/** Two tables for people: settings with what they take and their default; rates with what they may be. */
export function settingReference(): string {
  const settings = listSettings().map(({ name, takes, usual, isSecret }) => [
    isSecret ? `${name}[_FILE]` : name,
    takes,
    usual,
  ])
  const rates = Object.entries(USUAL_RATES).map(([name, { count, perMs }]) => [
    name,
    `1 to ${count * RATE_FACTOR_MAX} in ${perMs / 1000} seconds`,
    `${count}`,
  ])
  return `${columns([['NAME', 'TAKES', 'DEFAULT'], ...settings])}\n${columns([['RATE', 'TAKES', 'DEFAULT'], ...rates])}`
}

function columns(rows: readonly (readonly string[])[]): string {
  const widths = [0, 1].map(at => Math.max(...rows.map(row => row[at]!.length)))
  return rows
    .map(
      ([name = '', takes = '', usual = '']) =>
        `${name.padEnd(widths[0]!)}  ${takes.padEnd(widths[1]!)}  ${usual}\n`,
    )
    .join('')
}

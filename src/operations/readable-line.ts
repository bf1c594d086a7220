/** A log line for people: what a terminal shows in place of the line of JSON that programs get. */

/** Takes a line of JSON from pino, returns lines that end in a line end. */
export function readableLine(line: string): string {
  const { time, level, event, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const told = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`)
  const head = `  ${String(time).slice(CLOCK_AT, CLOCK_END)} ${MARKS[String(level)] ?? ''}${textOf(event)}`
  return [[head, ...told].join(' '), ...stackOf(err)].map(each => `${each}\n`).join('')
}

/** Plain words as they are, anything else as JSON. */
function textOf(value: unknown): string {
  return typeof value === 'string' && /^[\w./:+@-]+$/.test(value) ? value : harmless(JSON.stringify(value))
}

function stackOf(error: unknown): readonly string[] {
  if (typeof error !== 'object' || error === null || !('stack' in error)) return []
  const lines = String(error.stack).split('\n')
  return lines.map(line => `      ${harmless(line)}`)
}

/** Without what draws on a terminal: a value may quote what a peer sent. */
function harmless(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are taken out.
  return text.replaceAll(/[\x00-\x1f\x7f-\x9f]/g, ' ')
}

/** Offset in an RFC 3339 time. */
const CLOCK_AT = 'YYYY-MM-DDT'.length
const CLOCK_END = CLOCK_AT + 'HH:MM:SS'.length
const MARKS: Readonly<Record<string, string>> = {
  warn: 'warning: ',
  error: 'ERROR: ',
  fatal: 'FATAL: ',
}

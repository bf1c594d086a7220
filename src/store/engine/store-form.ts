/**
 * The form of everything stored: tables, keys and rows, also those in PostgreSQL, and the bodies of changes. The maker record of
 * a log names it, as does the schema of a database.
 */

/** Raised with each change of that form, to 255 at most. No code reads an older form: a start refuses it. */
export const STORE_FORM = 13

/** Says what to do with `what`, a store or database of this form; undefined where this program reads it. */
export function refusalOfForm(form: unknown, what: string): string | undefined {
  if (form === STORE_FORM) return undefined
  return `${what} is not of form ${STORE_FORM}, the only one that this program reads: run the version that made it, or begin with an empty one`
}

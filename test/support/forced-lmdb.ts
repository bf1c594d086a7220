/**
 * Programs whose store breaks its word, for positive controls: a test that finds nothing wrong with the product has to
 * find something wrong with these. Loaded before a program (`--import`), it opens LMDB in the program's place.
 */

import { register } from 'node:module'
import { type Database, open as openAsked, type RootDatabase, type RootDatabaseOptionsWithPath } from 'lmdb'

/**
 * Other options for LMDB. With `isEarly`, commits resolve before they are written; with `isLeaky`, each range that is
 * read leaves a reader behind.
 */
export interface LmdbFault {
  readonly noSync?: boolean
  readonly overlappingSync?: boolean
  readonly isEarly?: boolean
  readonly isLeaky?: boolean
}

/** The environment in which a program has that fault. */
export function forcedLmdb(fault: LmdbFault): Readonly<Record<string, string>> {
  return { [FAULT]: JSON.stringify(fault), NODE_OPTIONS: `--import=${import.meta.url}` }
}

/** As the store calls it; it uses nothing else of the library. */
export function open(asked: RootDatabaseOptionsWithPath): RootDatabase {
  const { isEarly = false, isLeaky = false, ...options }: LmdbFault = JSON.parse(process.env[FAULT] ?? '{}')
  const environment = openAsked({ ...asked, ...options })
  if (isEarly) answerEarly(environment)
  if (isLeaky) leakReaders(environment)
  return environment
}

function answerEarly(environment: RootDatabase): void {
  const transaction = environment.transaction.bind(environment)
  environment.transaction = <Result>(write: () => Result) =>
    new Promise<Result>((resolve, reject) => {
      const written = transaction(() => {
        const result = write()
        resolve(result)
        return result
      })
      written.catch(reject)
    })
}

function leakReaders(environment: RootDatabase): void {
  const openTable = environment.openDB.bind(environment) as (...asked: unknown[]) => Database
  environment.openDB = ((...asked: unknown[]) => {
    const table = openTable(...asked)
    const getRange = table.getRange.bind(table)
    table.getRange = options => {
      if (LEAKED.size < LEAKED_MAX) LEAKED.add(environment.useReadTransaction())
      return getRange(options)
    }
    return table
  }) as RootDatabase['openDB']
}

const LEAKED = new Set<unknown>()
/** LMDB has room for 126 readers. */
const LEAKED_MAX = 100
const FAULT = 'LMDB_FAULT'

if (process.env[FAULT] !== undefined) {
  const hooks = `export async function resolve(specifier, context, next) {
    const isStore = specifier === 'lmdb' && context.parentURL?.endsWith('/src/store/engine/lmdb-store.js')
    return isStore ? { url: ${JSON.stringify(import.meta.url)}, shortCircuit: true } : next(specifier, context)
  }`
  register(`data:text/javascript,${encodeURIComponent(hooks)}`)
}

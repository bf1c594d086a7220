/** The project's imports, read from the text of its files. */

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { PROJECT_ROOT } from './vectors.ts'

export interface Import {
  readonly from: string
  readonly to: string
  readonly isType: boolean
  /** By a function that runs later, not when the file is loaded. */
  readonly isLater: boolean
}

/** The TypeScript files below a folder of the project. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => join(folder, name))
}

/** The imports that a file makes, also those of types. */
export function importsOf(file: string): Import[] {
  const text = readFileSync(join(PROJECT_ROOT, file), 'utf8')
  const first = text.matchAll(/^(?:import|export)\s+(type\s)?[^'"]*?from\s+['"]([^'"]+)['"]/gm)
  const later = text.matchAll(/\b(?:import|require)\('([^']+)'\)/g)
  const edge = (target: string) => ({
    from: file,
    to: target.startsWith('.') ? relative('.', join(dirname(file), target)) : target,
  })
  return [
    ...Array.from(first, ([, type, target]) => ({
      ...edge(target!),
      isType: type !== undefined,
      isLater: false,
    })),
    ...Array.from(later, ([, target]) => ({ ...edge(target!), isType: false, isLater: true })),
  ]
}

/**
 * Counts how far a reader goes who follows the code from one moment to another: files, and returns to files already left.
 *
 * - A way's files are those with a function that ran, but helpers and machines, which are listed apart. A helper imports
 *   nothing of the project, not even a type, or only files that import nothing, or only such files. Machines are
 *   `src/runtime`, which carries messages, and `src/store/engine`, which carries changes to the disk.
 * - A return: the way enters a file that it has left, from a file further down the list or from outside (a message, a
 *   promise, a socket). While a file's function is on the stack, or awaits the running call, the file is not left. A
 *   call that is made again is no further return. Getters and first values of members are no steps.
 *
 * This counts 40 files for `call/start` at commit fb6744a, as a reader did by hand.
 */

import type { Step } from './function-trace.ts'
import { importsOf, sourceFiles } from './imports.ts'

export interface Way {
  /** By file, in the order of the way: the functions that ran. */
  readonly files: ReadonlyMap<string, ReadonlySet<string>>
  readonly returns: readonly Return[]
  /** Helpers and machines that ran. */
  readonly beside: ReadonlySet<string>
}

export interface Return {
  readonly file: string
  readonly name: string
  /** The file that calls; undefined for a message, a promise or a socket. */
  readonly from: string | undefined
}

export function countWay(steps: readonly Step[], isBeside: (file: string) => boolean): Way {
  const files = new Map<string, Set<string>>()
  const returns: Return[] = []
  const beside = new Set<string>()
  const calls = new Set<string>()
  let last: string | undefined
  for (const { file, name, callers } of steps) {
    if (/^get |^</.test(name)) continue
    if (isBeside(file)) {
      beside.add(file)
      continue
    }
    const onWay = callers.filter(caller => !isBeside(caller.file))
    const from = onWay[0]
    const call = from && `${from.place} ${file} ${name}`
    const order = [...files.keys()]
    const wasLeft = files.has(file) && file !== last && !onWay.some(caller => caller.file === file)
    const isBackwards = from === undefined || order.indexOf(from.file) > order.indexOf(file)
    const isRepeated = call !== undefined && calls.has(call)
    if (wasLeft && isBackwards && !isRepeated) returns.push({ file, name, from: from?.file })
    if (call !== undefined) calls.add(call)
    files.set(file, (files.get(file) ?? new Set()).add(name))
    last = file
  }
  return { files, returns, beside }
}

/** Tells helpers and machines of the project from files that a way is counted in. */
export function besideWays(): (file: string) => boolean {
  const imports = new Map(
    ['src', 'actors']
      .flatMap(sourceFiles)
      .map(file => [file, importsOf(file).flatMap(({ to }) => (to.endsWith('.ts') ? [to] : []))] as const),
  )
  const isHelper = (file: string, steps: number): boolean => {
    const imported = imports.get(file) ?? []
    return imported.length === 0 || (steps > 0 && imported.every(each => isHelper(each, steps - 1)))
  }
  return file => MACHINES.test(file) || isHelper(file, HELPER_STEPS)
}

const MACHINES = /^src\/(?:runtime|store\/engine)\//
const HELPER_STEPS = 2

/**
 * Native binaries of a server in production: those of this version and those that the operator names. A program that serves
 * calls this before it imports what loads them.
 */

import { guardBinaries } from '../../operations/native-binaries.ts'
import type { Config } from '../settings/config.ts'
import { endProcess } from './end-process.ts'

/** Ends the process, with a sentence, before the code of any other binary runs. */
export function guardOwnBinaries(choice: string): void {
  if (choice === ANY) return
  guardBinaries(choice.split(','), sentence => {
    process.stderr.write(`callsign: ${sentence}\n`)
    endProcess()
  })
}

/** The allowed binaries as an argument of a front, which loads one to read its settings. */
export function binaryChoice({ isDevelopment, nativeBinaries }: Config): string {
  return isDevelopment ? ANY : nativeBinaries.join(',')
}

const ANY = 'any'

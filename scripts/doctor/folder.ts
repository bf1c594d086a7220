/** The data directory as files: whether the server could write where the store is, or would be. */

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { assertWritable } from '../../src/store/engine/store-files.ts'
import { type Finding, fails } from './finding.ts'

/** Undefined where the store, or the nearest folder above it that is there, can be written to. */
export function judgeFolder(dataFolder: string): Finding | undefined {
  const nearest = nearestFolder(join(dataFolder, 'store'))
  const attributes = statSync(nearest)
  if (!attributes.isDirectory())
    return fails('store', `${nearest} is a file: set CALLSIGN_DATA_DIR to a folder`)
  const code = codeOf(() => accessSync(nearest, constants.W_OK | constants.X_OK))
  if (code === undefined) return judgeFiles(dataFolder)
  if (code === 'EROFS')
    return fails('store', `${nearest} is on a disk that is mounted read-only: dmesg may say since when`)
  if (!existsSync(dataFolder) && codeOf(() => accessSync(nearest, constants.X_OK)) === undefined)
    return fails(
      'store',
      `${dataFolder} is not there and ${nearest} is not writable: make it for the server's user`,
    )
  return fails(
    'store',
    `${nearest} belongs to user ${attributes.uid} and is not writable for this one: run the doctor as the server's user, or chown it`,
  )
}

function judgeFiles(dataFolder: string): Finding | undefined {
  try {
    assertWritable(dataFolder)
    return undefined
  } catch (error) {
    const path = error instanceof Error && 'path' in error ? error.path : dataFolder
    return fails(
      'store',
      `${path} is not writable for this user: run the doctor as the server's user, or chown it`,
    )
  }
}

/** The nearest folder above that is there, or the path itself. */
export function nearestFolder(path: string): string {
  return existsSync(path) ? path : nearestFolder(dirname(path))
}

/** The system's code for what went wrong. */
function codeOf(act: () => void): unknown {
  try {
    act()
    return undefined
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  }
}

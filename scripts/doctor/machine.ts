/** The machine: room on its disks, files that may be open, and its clock. */

import { readFileSync, statfsSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { binariesToLoad, foreignBinaries } from '../../src/operations/native-binaries.ts'
import { type Check, type Finding, fails, off, ok, type Patient } from './finding.ts'
import { nearestFolder } from './folder.ts'

export const checkMachine: Check = async ({ config }) => {
  const { headFile } = config.log
  return [
    judgeDisk('disk', config.dataFolder),
    ...(headFile === undefined ? [] : [judgeDisk('head file disk', dirname(headFile))]),
    judgeFiles(config.fronts),
    ...config.openFiles.map(sentence => fails('secret files', sentence)),
    ...judgeBinaries(config.nativeBinaries),
  ]
}

/** The binaries that a server on this machine would load. */
function judgeBinaries(allowed: readonly string[]): readonly Finding[] {
  const binaries = binariesToLoad()
  const findings = binaries.map(binary => {
    const [foreign] = foreignBinaries([binary], allowed)
    const detail = `${basename(binary.path)} of ${binary.from ?? 'CALLSIGN_NATIVE_HASHES'}, SHA-256 ${binary.sha256}`
    return foreign === undefined ? ok('native binary', detail) : fails('native binary', foreign)
  })
  if (binaries.some(({ path }) => basename(path).startsWith('uws_'))) return findings
  const here = `Node ${process.version}, ${process.platform} ${process.arch}`
  return [
    ...findings,
    fails('native binary', `none of uWebSockets.js is installed for ${here}: run npm ci and build again`),
  ]
}

function judgeDisk(check: string, folder: string): Finding {
  const { bavail, blocks, bsize } = statfsSync(nearestFolder(folder))
  const [free, whole] = [bavail * bsize, blocks * bsize]
  const room = `${gigabytes(free)} of ${gigabytes(whole)} are free for ${folder}`
  if (free < FREE_BYTES_MIN || free < FREE_SHARE_MIN * whole) {
    return fails(check, `${room}: make room before registrations are refused`)
  }
  return ok(check, room)
}

function judgeFiles(fronts: number): Finding {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readLimits()) ?? []
  if (soft === undefined)
    return off('open files', 'this system does not say how many files a process may open')
  const connections = Math.floor(Number(soft) * CONNECTIONS_SHARE)
  const detail = `${soft} open files, so at most ${connections} connections${fronts > 1 ? ` at each of ${fronts} fronts` : ''}`
  if (Number(soft) < OPEN_FILES_MIN) return fails('open files', `${detail}: raise LimitNOFILE or ulimit -n`)
  return ok('open files', detail)
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1')
  } catch {
    return ''
  }
}

/** Runs when every other check has ended: they gather what other hosts say the time is. */
export function judgeClock({ skews }: Patient): Finding {
  const [nearest] = [...skews].sort((one, other) => Math.abs(one.aheadMs) - Math.abs(other.aheadMs))
  if (nearest === undefined) return off('clock', 'nobody to compare with; keep it right by NTP')
  const seconds = Math.round(Math.abs(nearest.aheadMs) / 1000)
  const skew = seconds === 0 ? 'with' : `${seconds} s ${nearest.aheadMs > 0 ? 'ahead of' : 'behind'}`
  const detail = `this machine's clock is ${skew} that of ${nearest.host}`
  return seconds > SKEW_SECONDS_MAX ? fails('clock', `${detail}: set it by NTP`) : ok('clock', detail)
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`
}

const FREE_BYTES_MIN = 1e9
const FREE_SHARE_MIN = 0.05
const CONNECTIONS_SHARE = 0.9
const OPEN_FILES_MIN = 4_096
/** Tokens of Apple and Google, and credentials of the relay, bear a minute or two. */
const SKEW_SECONDS_MAX = 30

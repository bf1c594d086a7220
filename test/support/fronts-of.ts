/** The front processes of a server, by the system's own list. */

import { readdirSync, readFileSync } from 'node:fs'

/** The processes that the server has started. */
export function frontsOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(each => isFrontOf(each, pid))
}

function isFrontOf(pid: number, parent: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [, parentPid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(parentPid) === parent && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('front.js')
  } catch {
    return false
  }
}

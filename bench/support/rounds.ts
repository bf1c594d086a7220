/** Limit and project side by side: measured in short turns, one after the other, in the other order each time. */

import { cpuSeconds } from './machine.ts'

/** What both measured, a figure for each turn. */
export interface Turns<Limit, Project = Limit> {
  readonly limit: readonly Limit[]
  readonly project: readonly Project[]
}

/**
 * Measures both so many times. Whatever else the machine does, and however both warm up, then meets them alike.
 */
export async function interleaved<Limit, Project = Limit>(
  round: number,
  turns: number,
  measureLimit: () => Promise<Limit>,
  measureProject: () => Promise<Project>,
): Promise<Turns<Limit, Project>> {
  const limit: Limit[] = []
  const project: Project[] = []
  for (let turn = 0; turn < turns; turn++) {
    if ((round + turn) % 2 === 1) limit.push(await measureLimit())
    project.push(await measureProject())
    if ((round + turn) % 2 === 0) limit.push(await measureLimit())
  }
  return { limit, project }
}

/** What `run` came to, and the processor seconds that the process spent meanwhile. */
export async function withCpu<Figure>(
  pid: number,
  run: () => Promise<Figure>,
): Promise<{ readonly figure: Figure; readonly cpu: number }> {
  const before = cpuSeconds(pid)
  const figure = await run()
  return { figure, cpu: cpuSeconds(pid) - before }
}

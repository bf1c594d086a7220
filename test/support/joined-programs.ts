/** The programs of the tests, joined as the build joins those of operators: the suite starts hundreds of servers. */

import { joinPrograms, programsIn, SERVER_PROGRAMS } from '../../scripts/support/joined-programs.ts'

/** Writes them, and those of operators, into the folder, which is `CALLSIGN_JOINED_PROGRAMS` for the tests. */
export async function joinTestPrograms(folder: string): Promise<void> {
  const others = [...programsIn('scripts', /\.js$/), ...programsIn('test/support', /-program\.js$/)]
  await joinPrograms(folder, [SERVER_PROGRAMS, others])
}

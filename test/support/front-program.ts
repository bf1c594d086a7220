/**
 * A front that serves nothing: it says its name over its connection, answers `ping` and ends at `stop`. A second
 * argument of `deaf` has it not end, and `loud` say on its output that the writer has gone.
 */

import { Link } from '../../src/fronts/link/link.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { connectToWriter } from '../../src/server/fronts/front-processes.ts'
import { makeStage } from './actors.ts'

const [name = '', manner] = process.argv.slice(2)
const socket = connectToWriter(() => {
  if (manner === 'loud') process.stdout.write('lost\n')
})
const link: Link = new Link({
  socket,
  self: { name, version: '1' },
  system: makeStage().system,
  serves: new Map(),
  world: realWorld(),
  onMessage(said) {
    if (said === 'ping') link.send('pong')
    if (said === 'stop' && manner !== 'deaf') process.exit(0)
    return undefined
  },
})
link.send(`${name} ${process.pid} ${process.argv.slice(3).join(' ')}`)

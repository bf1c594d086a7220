/** A process that runs the simulator's stand-in as the server does, and does nothing else, to be killed by a test. */

import { Simulator } from '../../src/operations/console/simulator.ts'

const [file = '', hold = ''] = process.argv.slice(2)
const simulator = new Simulator(() => process.stdout.write('it runs\n'))
simulator.command({ kind: 'people', behaviours: ['answer'] }, { file, args: ['--hold', hold] })

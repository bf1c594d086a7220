/** Mistakes made on purpose in the inputs and acts of a device's machine, to see that seeded runs show them. */

import { decide } from '../../src/app/calls/device-call.ts'

export type DeviceBug = 'none'

export function decideWith(_bug: DeviceBug | undefined): typeof decide {
  return decide
}

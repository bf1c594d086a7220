import { callsign } from './callsign.mjs'
import { people } from './people.mjs'

for (const { id } of people.slice(0, 20)) await callsign.circles.addMember('sales', { ext: id })
for await (const { externalId, displayName } of callsign.circles.members('sales'))
  console.log(externalId, displayName)

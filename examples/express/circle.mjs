import { callsign } from './callsign.mjs'
import { people } from './people.mjs'

for (const { id } of people.slice(10, 30)) await callsign.circles.addMember('sales', { ext: id })
const members = []
for await (const { externalId } of callsign.circles.members('sales')) members.push(externalId)
console.log(`${members.length} people in sales`)

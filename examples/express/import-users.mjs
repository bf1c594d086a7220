import { callsign } from './callsign.mjs'
import { people } from './people.mjs'

const users = people.map(({ id, name, email }) => ({ ref: { ext: id }, displayName: name, email }))
const counts = {}
for await (const { line, status, detail } of callsign.users.import(users)) {
  counts[status] = (counts[status] ?? 0) + 1
  if (status === 'refused') console.error(`line ${line}: ${detail}`)
}
console.log(counts)

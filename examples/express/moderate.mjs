import { callsign } from './callsign.mjs'

for await (const { reportId, reported, reason } of callsign.reports.list({ state: 'open' })) {
  await callsign.users.suspend({ id: reported.userId }, { reason })
  await callsign.reports.change(reportId, { state: 'resolved', note: 'Suspended' })
  console.log(`${reported.displayName} is suspended: ${reason}`)
}

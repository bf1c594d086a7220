/** Figures of the runtime, which are watched from the first scrape on. */

import t from 'tap'
import { Metrics } from '../../src/operations/metrics.ts'

t.test('processor time counts from the start of the process, not from the first scrape', async t => {
  const { user, system } = process.cpuUsage()
  const text = await new Metrics().text()
  const figure = (name: string) =>
    Number(new RegExp(`^process_${name}_seconds_total (.+)$`, 'm').exec(text)?.[1])
  t.ok(figure('cpu_user') >= user / 1e6)
  t.ok(figure('cpu_system') >= system / 1e6)
  t.ok(figure('cpu') >= (user + system) / 1e6)
})

/** Ids of requests and connections: unique without the cost of randomness for each. */

import { nanoid } from 'nanoid'

/** Makes ids of a random name, which is this process's and this sequence's, and a count: `<name>-<count>`. */
export function idSequence(): () => string {
  const name = nanoid(12).replaceAll('-', '_')
  let count = 0
  return () => `${name}-${(++count).toString(36)}`
}

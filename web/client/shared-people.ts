/** People whose link was opened in this browser, until their devices are verified for the first time. */

import type { ListedPerson } from '../../src/client/client.ts'

export function sharedPeople(ownUserId: string) {
  const name = `callsign.links.${ownUserId}`
  const read = (): Record<string, string> => JSON.parse(localStorage.getItem(name) ?? '{}')
  return {
    get(userId: string): ListedPerson | undefined {
      const listHash = read()[userId]
      return listHash === undefined ? undefined : { userId: BigInt(userId), listHash }
    },
    put({ userId, listHash }: ListedPerson): void {
      localStorage.setItem(name, JSON.stringify({ ...read(), [`${userId}`]: listHash }))
    },
    delete(userId: string): void {
      const { [userId]: _, ...others } = read()
      localStorage.setItem(name, JSON.stringify(others))
    },
  }
}

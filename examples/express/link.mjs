import { callsign } from './callsign.mjs'

/** `userId` is that of a token you have verified. */
export const link = (userId, person) => callsign.users.put({ id: userId }, { externalId: person.id })

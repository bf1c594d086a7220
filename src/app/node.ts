/** `@callsign/sdk/app/node`: what only Node has. */

export { fileStorage } from './storage/file-storage.ts'

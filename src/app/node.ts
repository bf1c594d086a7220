/** `callsign/app/node`: what only Node has. */

export { fileStorage } from './file-storage.ts'

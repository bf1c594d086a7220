/** The exports of `@callsign/sdk/ui`: custom elements for calling apps. Importing it defines them. */

export { useWords, type Word } from './words.ts'

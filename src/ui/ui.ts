/** The exports of `@callsign/sdk/ui`: custom elements for calling apps. Importing it defines them. */

export { CallsignCall } from './call/call-element.ts'
export { useWords, type Word } from './words.ts'

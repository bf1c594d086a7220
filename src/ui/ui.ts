/** The exports of `@callsign/sdk/ui`: custom elements for calling apps. Importing it defines them. */

export { CallsignAccount } from './home/account.ts'
export { CallsignAddContact } from './home/add-contact.ts'
export { CallsignContacts, type CallWish } from './home/contacts.ts'
export { CallsignDevices } from './home/devices.ts'
export { CallsignNotices } from './home/notices.ts'
export { CallsignProof } from './home/proof.ts'
export { CallsignSignIn } from './home/sign-in.ts'
export { browserName } from './names.ts'
export { useWords, type Word } from './words.ts'

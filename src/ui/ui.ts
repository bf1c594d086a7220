/** The exports of `@callsign/sdk/ui`: custom elements for calling apps. Importing it defines them. */

export { CallsignCall } from './call/call-element.ts'
export { CallsignDevices } from './home/devices.ts'
export { CallsignProof } from './home/proof.ts'
export { CallsignSignIn } from './home/sign-in.ts'
export type { MediaDeviceList } from './media/device-list.ts'
export { Media } from './media/media.ts'
export type { MediaPeer, MediaView } from './media/media-view.ts'
export type { MediaChoice } from './media/own-devices.ts'
export { browserName } from './names.ts'
export { useWords, type Word } from './words.ts'

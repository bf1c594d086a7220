/** The exports of `@callsign/sdk/ui`: custom elements for calling apps. Importing it defines them. */

export { CallsignCall } from './call/call-element.ts'
export type { MediaDeviceList } from './media/device-list.ts'
export { CallsignDeviceMenus } from './media/device-menus.ts'
export { CallsignLobby } from './media/lobby.ts'
export { Media } from './media/media.ts'
export type { MediaPeer, MediaView } from './media/media-view.ts'
export type { MediaChoice } from './media/own-devices.ts'
export { CallsignRing } from './media/ring.ts'
export { Tone } from './tone.ts'
export { useWords, type Word } from './words.ts'

/** The server, and the keys of its log. They are the operator's, and built into the app. */

// A phone does not find the computer under 127.0.0.1: name it by its address in the network, or use `adb reverse`.
export const server = 'http://127.0.0.1:8080'
export const pins = { vkey: '', vrfPublicKey: '' }
export const bundleId = 'com.example.myphoneapp'

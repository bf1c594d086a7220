/** The server, and the keys by which this app knows its key log. Written by `callsign new`; an operator publishes others. */

export const server = 'http://127.0.0.1:8080'
export const pins = { vkey: '', vrfPublicKey: '' }

/** The server, and the keys of its log. `callsign new` writes them here; a real operator publishes its own. */

export const server = 'http://127.0.0.1:8080'
export const pins = { vkey: '', vrfPublicKey: '' }

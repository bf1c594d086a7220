package org.example.calls

import callsign.verify.LogKeys

/** The server, and the keys of its log from `/app/api/meta` (`log.vkey`, `log.vrfPublicKey`): they come with the app. */
const val SERVER = "https://call.example.org"

val PINS: LogKeys = LogKeys.ofVerifierKey(
    "the server's log.vkey",
    "the server's log.vrfPublicKey",
)

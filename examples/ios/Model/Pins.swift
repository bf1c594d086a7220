import CallsignVerify

/// The server, and the keys of its log from `/app/api/meta` (`log.vkey`, `log.vrfPublicKey`): they come with the app.
let serverURL = "https://call.example.org"

func pins() throws -> LogKeys {
    try LogKeys.ofVerifierKey("the server's log.vkey", vrfPublicKey: "the server's log.vrfPublicKey")
}

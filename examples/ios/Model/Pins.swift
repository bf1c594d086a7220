import CallsignVerify

/// The server, and the keys of its log from `/app/api/meta` (`log.vkey`, `log.vrfPublicKey`): they come with the app.
let serverURL = "https://call.example.org"
private let vkey = "the server's log.vkey"
private let vrfPublicKey = "the server's log.vrfPublicKey"

/// Without right ones there is no app.
let pins: LogKeys = {
    do {
        return try LogKeys.ofVerifierKey(vkey, vrfPublicKey: vrfPublicKey)
    } catch {
        fatalError("Pins.swift: \(error)")
    }
}()

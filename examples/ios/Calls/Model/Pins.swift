import CallsignApp
import CallsignVerify

/// The server, and the keys of its log from `/app/api/meta` (`log.vkey`, `log.vrfPublicKey`): they come with the app.
private let address = "https://call.example.org"
private let vkey = "the server's log.vkey"
private let vrfPublicKey = "the server's log.vrfPublicKey"

/// Without right ones there is no app.
func callsign(
    _ storage: any AppStorage, _ keysOf: @escaping DeviceKeysOf, _ device: DeviceDetails, _ passkeys: any PasskeyAuthenticator
) -> Callsign {
    do {
        let pins = try LogKeys.ofVerifierKey(vkey, vrfPublicKey: vrfPublicKey)
        let server = try Server(address)
        return Callsign(
            server: server, pins: pins, storage: storage, keysOf: keysOf, device: device, passkeys: passkeys)
    } catch {
        fatalError("Pins.swift: \(error)")
    }
}

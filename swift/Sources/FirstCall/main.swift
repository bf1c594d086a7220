// Signs in at a development server, becomes a contact of a person, calls them, and is called back.
import CallsignApp

let url = CommandLine.arguments[1]
guard let peer = UInt64(CommandLine.arguments[2]) else { fatalError("call whom?") }
let pins = try await developmentPins(url)  // an app has them built in
let server = try Server(url, sockets: sockets())  // `Server(url)` on Apple's systems
let me = Callsign(server: server, pins: pins, storage: MemoryAppStorage())
let address = "kim@example.org"
try await me.signIn(address, displayName: "Kim") { _ in try await sentCode(url, address) }
let news = me.events
try await me.contacts.request(peer)
for await event in news {
    if case .message("contact_added", _) = event { break }
}

let call = try await me.call(peer)  // sealed for those of their devices that the log proves
print("called: \(call.fingerprint ?? "")")
for await state in call.state.values where state == .ended { break }

for await back in me.ringing {
    try await back.answer()  // once the caller's device and the key are verified
    print("called back: \(back.fingerprint ?? ""), verified: \(back.isVerified == true)")
    try await back.end()
    break
}
await me.close()

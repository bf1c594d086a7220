// For programs that try a development server without a person. An app has its pins built in, and its user types the code.
import CallsignVerify
import Foundation

/// The keys of the log as the server itself says them: nothing is proved by them, since it could say any.
public func developmentPins(_ url: String) async throws -> LogKeys {
    guard let meta = try await Server(url).request("GET", "meta") else { throw answerInvalid() }
    let log = try meta.member("log")
    return try LogKeys.ofVerifierKey(
        log.needText("vkey"),
        vrfPublicKey: log.needText("vrfPublicKey"),
        indexVkey: log["index"]?.object?.needText("vkey")
    )
}

/// The code that was just sent to the address, from `/dev/inbox`. It leaves a moment after the answer to the login. Throws
/// `NOT_FOUND` where none comes.
public func sentCode(_ url: String, _ address: String) async throws -> String {
    let http = URLSessionHTTP()
    // What `+` means in a query differs.
    let unreserved = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-._~"))
    let query = address.addingPercentEncoding(withAllowedCharacters: unreserved) ?? address
    let request = HTTPRequest(method: "GET", url: "\(url)/dev/inbox?to=\(query)", octetsMax: 1024 * 1024, timeoutMs: 15_000)
    for _ in 0..<100 {
        if let answer = try? await http.send(request), let code = try code(in: answer) { return code }
        try await Task.sleep(nanoseconds: 50_000_000)
    }
    throw CallsignError("NOT_FOUND", "No code for \(address) is in the inbox of a development server.")
}

private func code(in answer: HTTPAnswer) throws -> String? {
    // Another code can be asked for after a minute.
    let recentMs = 5_000
    let sinceMs = (answer.headers["date"].flatMap(timeMsOfDate) ?? 0) - recentMs
    let letters = try answer.body.flatMap { JSONValue(octets: $0)?.object }?.members("items") ?? []
    for letter in letters {
        if let code = letter.text("otp"), try letter.needTimeMs("at") > sinceMs { return code }
    }
    return nil
}

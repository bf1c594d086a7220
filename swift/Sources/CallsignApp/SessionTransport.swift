import CallsignVerify

/// Requests to the log by the app's own transport, with its pinned certificates. Lookups have the access token, so that the
/// server counts this user and not everybody behind their address. Files of the log are asked for without one, as auditors do,
/// and as caches and mirrors may hear.
struct SessionTransport: LogTransport {
    private let server: Server
    private let session: Session

    init(_ server: Server, _ session: Session) {
        self.server = server
        self.session = session
    }

    func send(_ request: LogRequest) async throws -> LogAnswer {
        var headers: [String: String] = [:]
        if request.body != nil {
            headers["content-type"] = "application/json"
            headers["authorization"] = try await session.authorization(at: request.url)
        }
        let answer = try await server.http.send(
            HTTPRequest(
                method: request.body == nil ? "GET" : "POST",
                url: request.url,
                headers: headers,
                body: request.body.map { Array($0.utf8) },
                octetsMax: request.answerOctetsMax,
                timeoutMs: Self.answerWithinMs,
                tlsPins: server.isAt(request.url) ? server.tlsPins : .none
            ))
        guard let body = answer.body else { throw TooLong(octetsMax: request.answerOctetsMax) }
        return LogAnswer(status: answer.status, body: body)
    }

    private struct TooLong: Error {
        let octetsMax: Int
    }

    private static let answerWithinMs = 15_000
}

// Requests to the server: their problems as errors, and repeated when the server is busy or does not answer.
import CallsignVerify
import Foundation

/// One server as an app sees it.
public final class Server: Sendable {
    private struct Clock {
        /// How much the server's clock is ahead of this one.
        var aheadMs = 0

        /// Whether the server has named its time yet.
        var isKnown = false
    }

    let prefix: String
    let http: any HTTPTransport
    let sockets: any SocketTransport
    let tlsPins: TLSPins
    let language: String
    let nowMs: @Sendable () -> Int
    private let clientVersion: String?
    private let clock = Locked(Clock())

    /// - Parameters:
    ///   - url: such as `https://call.example.org`.
    ///   - clientVersion: `X-Client-Version`, such as `ios/1.4.2 (214)`.
    ///   - nowMs: the clock, POSIX time in milliseconds.
    ///   - tlsPins: `sha256/` and base64 of SHA-256 of a public key. Without one of these keys in the server's chain of
    ///     certificates nothing is sent to it. None: the phone's authorities alone decide.
    ///   - language: the tag of the user's language, such as `vi-VN`, in which errors have their sentences.
    ///
    /// Throws `MALFORMED` for an address that is none, a pin of another form, and pins for a server without TLS.
    public init(
        _ url: String,
        http: any HTTPTransport = URLSessionHTTP(),
        sockets: any SocketTransport = platformSockets(),
        clientVersion: String? = nil,
        nowMs: @escaping @Sendable () -> Int = systemTimeMs,
        tlsPins: [String] = [],
        language: String = preferredLanguage()
    ) throws {
        let octets = Array(url.utf8.reversed().drop { $0 == UInt8(ascii: "/") }.reversed())
        prefix = String(decoding: octets, as: UTF8.self)
        guard let parsed = URL(string: prefix), let scheme = parsed.scheme?.lowercased(), parsed.host != nil,
            scheme == "https" || scheme == "http"
        else { throw CallsignError("MALFORMED", "That is no address of a server: \(url)") }
        if !tlsPins.isEmpty && scheme != "https" { throw CallsignError("MALFORMED", "TLS pins need a server at https://.") }
        self.tlsPins = try TLSPins(tlsPins)
        self.http = http
        self.sockets = sockets
        self.clientVersion = clientVersion
        self.nowMs = nowMs
        self.language = language
        Spoken.language = language
    }

    /// Whether the server has named its time yet.
    var isTimeKnown: Bool { clock.with { $0.isKnown } }

    /// Whether a request to this address goes to the server.
    func isAt(_ url: String) -> Bool { url.utf8.starts(with: "\(prefix)/".utf8) }

    /// The time by the server's clock, which the times in its answers are of.
    public func serverTimeMs() -> Int { nowMs() + clock.with { $0.aheadMs } }

    /// Takes a time that the server has just named, such as `server-time` of a STOMP connection.
    func hearTime(_ serverMs: Int, toleranceMs: Int = 0) {
        guard (0...Self.timeMsMax).contains(serverMs) else { return }
        let nowMs = nowMs()
        clock.with { clock in
            clock.isKnown = true
            if abs(serverMs - (nowMs + clock.aheadMs)) > toleranceMs { clock.aheadMs = serverMs - nowMs }
        }
    }

    /// The JSON that answers `operation`, such as `login` or `call/start`; nil for an empty answer. All attempts of a POST have
    /// one `Idempotency-Key`, which is among `headers` where the caller repeats it too. Throws the server's refusal, or
    /// `NO_ANSWER` or `ANSWER_INVALID`.
    public func request(
        _ method: String,
        _ operation: String,
        body: [String: JSONValue]? = nil,
        headers: [String: String] = [:]
    ) async throws -> [String: JSONValue]? {
        let all = idempotencyKey(of: method).merging(headers) { $1 }
        var attempts = 0
        while true {
            switch try await attempt(method, operation, body, all) {
            case .reply(let value): return value
            case .failure(let error, let retryAfterS):
                let canRepeatLost = !Self.counted.contains("\(method) \(operation)")
                guard let waitMs = Self.waitMs(error, retryAfterS, attempts, canRepeatLost) else { throw error }
                attempts += 1
                try await pause(forMs: waitMs)
            }
        }
    }

    private enum Outcome {
        case reply([String: JSONValue]?)
        case failure(CallsignError, retryAfterS: Int? = nil)
    }

    /// How long to wait before the next attempt; nil for none.
    private static func waitMs(_ error: CallsignError, _ retryAfterS: Int?, _ attempt: Int, _ canRepeatLost: Bool) -> Int? {
        if attempt + 1 >= attemptsMax || error.code == "OTP_COOLDOWN" { return nil }
        // It would be the same one again.
        if error.cause is TLSPinMismatch { return nil }
        let isBusy = error.status == 429 || error.status == 503
        let isLost = error.code == CallsignError.LocalCode.noAnswer || error.status == 502 || error.status == 504
        if !isBusy && !(isLost && canRepeatLost) { return nil }
        if let retryAfterS {
            return retryAfterS > retryAfterMaxS ? nil : 1_000 * max(retryAfterS, 0) + Int.random(in: 0..<1_000)
        }
        return Int.random(in: 0..<min(waitMsMax, firstWaitMs << attempt))
    }

    private func attempt(
        _ method: String,
        _ operation: String,
        _ body: [String: JSONValue]?,
        _ headers: [String: String]
    ) async throws -> Outcome {
        var all: [String: String] = [:]
        if !language.isEmpty { all["accept-language"] = language }
        all["x-client-version"] = clientVersion
        if body != nil { all["content-type"] = "application/json" }
        let content = body.map { JSONValue.object($0).text } ?? (method == "POST" || method == "PUT" ? "" : nil)
        let request = HTTPRequest(
            method: method,
            url: "\(prefix)/app/api/\(operation)",
            headers: all.merging(headers) { $1 },
            body: content.map { Array($0.utf8) },
            octetsMax: Self.answerOctetsMax,
            timeoutMs: Self.answerWithinMs,
            tlsPins: tlsPins
        )
        do {
            return outcome(of: try await http.send(request))
        } catch let error as CallsignError {
            // The transport says what is wrong with the request.
            throw error
        } catch let cause as TLSPinMismatch {
            let sentence = "Another server answers: its certificate is not the one that this app expects."
            return .failure(CallsignError(CallsignError.LocalCode.noAnswer, sentence, cause: cause))
        } catch {
            try Task.checkCancellation()
            return .failure(CallsignError(CallsignError.LocalCode.noAnswer, "The server does not answer.", cause: error))
        }
    }

    private func outcome(of answer: HTTPAnswer) -> Outcome {
        let status = answer.status
        if let serverMs = answer.headers["date"].flatMap(timeMsOfDate) { hearTime(serverMs, toleranceMs: Self.dateToleranceMs) }
        let value = answer.body.flatMap { JSONValue(octets: $0) }.flatMap { $0.object }
        let isSuccess = (200..<300).contains(status)
        if isSuccess && (value != nil || answer.body?.isEmpty == true) { return .reply(value) }
        if isSuccess || (300..<400).contains(status) {
            let sentence = "The server answered with something else than its interface says."
            return .failure(CallsignError(CallsignError.LocalCode.answerInvalid, sentence, status: status))
        }
        let sentence = "The server answered with status \(status)."
        let error = errorOf(value.map(JSONValue.object), "HTTP_\(status)", sentence, status: status)
        return .failure(error, retryAfterS: answer.headers["retry-after"].flatMap(wholeNumber))
    }

    private static let attemptsMax = 6
    private static let answerWithinMs = 15_000

    /// The longest replies, with the keys of many devices, have some hundred thousand.
    private static let answerOctetsMax = 8 * 1024 * 1024

    /// Bounds of the first wait and of all further ones, without `Retry-After`.
    private static let firstWaitMs = 500
    private static let waitMsMax = 10_000

    /// An app says so to its user rather than wait longer.
    private static let retryAfterMaxS = 20

    /// `Date` counts whole seconds, and the answer has been on its way.
    private static let dateToleranceMs = 5_000

    /// The last time that JavaScript has.
    private static let timeMsMax = 8_640_000_000_000_000

    /// Each attempt counts: a repeated one could use up codes or tries, and a passkey's answer is good once.
    private static let counted: Set = [
        "POST resend-otp",
        "POST verify-login",
        "POST verify",
        "POST user/step-up",
        "POST login/passkey",
        "POST user/passkeys",
        "POST user/login-methods",
    ]
}

/// The header by which the server knows a POST that it has carried out already; none for other methods.
func idempotencyKey(of method: String) -> [String: String] {
    method == "POST" ? ["idempotency-key": UUID().uuidString.lowercased()] : [:]
}

/// POSIX time in milliseconds, by the system's clock.
@Sendable public func systemTimeMs() -> Int { Int(Date().timeIntervalSince1970 * 1_000) }

/// The tag of the language that the user likes best.
public func preferredLanguage() -> String { Locale.preferredLanguages.first ?? "" }

/// POSIX time in milliseconds of a time as the header `Date` has it (RFC 9110): `Mon, 30 Nov 2026 00:30:24 GMT`.
func timeMsOfDate(_ text: String) -> Int? {
    let words = text.utf8.split(separator: 0x20, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: words[2]) else { return nil }
    let number = month < 9 ? "0\(month + 1)" : "\(month + 1)"
    return timeMsOrNil("\(words[3])-\(number)-\(words[1])T\(words[4])Z")
}

private let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

// One WebSocket that speaks STOMP with the server, from CONNECT to its end: heart-beats, receipts, and refusals, which come to
// `/user/queue/errors`. It does not come back by itself. Heart-beats and the deadlines of answers stay here rather than in
// `ConnectionDecision.swift`: each belongs to one socket and to every octet on it, and ends as a close like any other.
import CallsignVerify

/// How a connection ended. `code` is as docs/protocol/socket.md has them; 1006 where the network broke, 1002 where the server broke the
/// protocol.
struct StompClose: Sendable {
    let code: Int
    let reason: String
    let retryAfterMs: Int
    let error: CallsignError?
}

/// How often this side sends something, and how often the server is to.
struct HeartBeatMs: Sendable {
    let outgoing: Int
    let incoming: Int
}

/// What a socket says to the server when it is open.
struct StompGreeting: Sendable {
    let host: String
    let accessToken: String
    let language: String
    let heartBeatMs: HeartBeatMs
}

@CallsignActor final class StompSocket {
    private enum Stage {
        case opening
        case connected
        case over
    }

    /// Complete when the connection has ended.
    let closed = Deferred<StompClose>()

    /// Requests without an answer so far, by receipt.
    private var waiting: [String: Deferred<[String: String]>] = [:]
    private let socket: any Socket
    private let greeting: StompGreeting
    private let answerWithinMs: Int
    private let onConnected: @CallsignActor ([String: String]) throws -> Void
    private let onMessage: @CallsignActor (StompFrame) throws -> Void
    private var receipts = 0
    private var stage = Stage.opening
    private var frameOctetsMax = 0

    /// The server is given up when it is silent for so long.
    private var silenceMs = 0
    private var silence: Task<Void, Never>?
    private var beats: Task<Void, Never>?
    private var reading: Task<Void, Never>?

    /// The ERROR with which the server ends the connection.
    private var error: StompFrame?

    /// `onConnected` takes the headers of CONNECTED and `onMessage` a MESSAGE: an error that they throw ends the connection.
    init(
        _ socket: any Socket,
        _ greeting: StompGreeting,
        answerWithinMs: Int,
        onConnected: @escaping @CallsignActor ([String: String]) throws -> Void,
        onMessage: @escaping @CallsignActor (StompFrame) throws -> Void
    ) {
        self.socket = socket
        self.greeting = greeting
        self.answerWithinMs = answerWithinMs
        self.onConnected = onConnected
        self.onMessage = onMessage
        reading = Task {
            for await event in socket.incoming { take(event) }
            end()
        }
        allowSilence(answerWithinMs)
    }

    static func request(to server: Server) -> SocketRequest {
        SocketRequest(
            url: "\(server.prefix)/ws",
            subprotocol: "v12.stomp",
            messageOctetsMax: messageOctetsMax,
            tlsPins: server.tlsPins
        )
    }

    /// Sends a frame at once. What it returns has the headers of its RECEIPT, the server's refusal, or `OFFLINE` where the
    /// connection ends before. Throws `BODY_TOO_LARGE`, or `OFFLINE`.
    func begin(_ command: String, _ headers: [StompHeader], body: String = "") throws -> Deferred<[String: String]> {
        if stage != .connected { throw offline() }
        receipts += 1
        let receipt = "\(receipts)"
        let frame = StompFrame.format(command, headers + [StompHeader("receipt", receipt)], body: body)
        // The NUL does not count.
        if frame.utf8.count - 1 > frameOctetsMax {
            throw CallsignError("BODY_TOO_LARGE", "The message is larger than the server takes.")
        }
        let answer = Deferred<[String: String]>()
        waiting[receipt] = answer
        socket.send(frame)
        return answer
    }

    /// Sends a frame that needs no answer.
    func tell(_ command: String, _ headers: [StompHeader]) {
        if stage == .connected { socket.send(StompFrame.format(command, headers)) }
    }

    /// Ends the connection when the server has carried out all that was sent, or does not answer.
    func disconnect() async {
        allowSilence(Self.disconnectWithinMs)
        // It may have ended already.
        _ = try? await begin("DISCONNECT", []).value
        abandon()
    }

    /// Ends the connection at once.
    func abandon() { end(code: 1000) }

    private func take(_ event: SocketEvent) {
        switch event {
        case .open:
            var headers = [
                StompHeader("accept-version", "1.2"),
                StompHeader("host", greeting.host),
                StompHeader("heart-beat", "\(greeting.heartBeatMs.outgoing),\(greeting.heartBeatMs.incoming)"),
                StompHeader("Authorization", "Bearer \(greeting.accessToken)"),
            ]
            if !greeting.language.isEmpty { headers.append(StompHeader("accept-language", greeting.language)) }
            socket.send(StompFrame.format("CONNECT", headers))
        case .text(let text): onText(text)
        case .closed(let code, let reason): end(code: code, reason: reason)
        }
    }

    private func onText(_ text: String) {
        if stage == .over { return }
        if stage == .connected { allowSilence(silenceMs) }
        // A lone line end is a heart-beat.
        if isSame(text, "\n") { return }
        do {
            if text.utf8.count > Self.messageOctetsMax { throw answerInvalid() }
            try onFrame(StompFrame(text))
        } catch {
            let sentence = "The server sent a frame that makes no sense here."
            end(code: 1002, fault: CallsignError(CallsignError.LocalCode.answerInvalid, sentence, cause: error))
        }
    }

    private func onFrame(_ frame: StompFrame) throws {
        if frame.command == "ERROR" { return onError(frame) }
        if (frame.command == "CONNECTED") != (stage == .opening) { throw answerInvalid() }
        switch frame.command {
        case "CONNECTED": try onConnected(headers: frame.headers)
        case "RECEIPT": answered(frame.headers["receipt-id"])?.complete(frame.headers)
        case "MESSAGE":
            if frame.headers["subscription"] == Self.errors { try onRefusal(frame) } else { try onMessage(frame) }
        default: throw answerInvalid()
        }
    }

    private func onRefusal(_ frame: StompFrame) throws {
        guard let members = objectIn(frame.body) else { throw answerInvalid() }
        let refusal = errorOf(members["problem"], CallsignError.LocalCode.answerInvalid, "The server refused it.")
        answered(members.text("receiptId"))?.fail(refusal)
    }

    private func onConnected(headers: [String: String]) throws {
        guard let theirs = heartBeat(in: headers["heart-beat"] ?? "0,0") else { throw answerInvalid() }
        func period(_ their: Int, _ our: Int) -> Int { their == 0 ? 0 : max(their, our) }
        let outMs = period(theirs.incoming, greeting.heartBeatMs.outgoing)
        let inMs = period(theirs.outgoing, greeting.heartBeatMs.incoming)
        stage = .connected
        frameOctetsMax = headers["max-frame"].flatMap(wholeNumber) ?? Self.frameOctetsMaxUsual
        if outMs > 0 {
            let socket = socket
            beats = Task {
                while await isSlept(outMs) { socket.send("\n") }
            }
        }
        allowSilence(inMs == 0 ? 0 : inMs * 5 / 2 + Self.silenceGraceMs)
        tell("SUBSCRIBE", [StompHeader("id", Self.errors), StompHeader("destination", "/user/queue/errors")])
        try onConnected(headers)
    }

    /// The server closes the connection after it.
    private func onError(_ frame: StompFrame) {
        error = frame
        allowSilence(answerWithinMs)
        answered(frame.headers["receipt-id"])?.fail(problem(in: frame))
    }

    private func answered(_ receipt: String?) -> Deferred<[String: String]>? {
        receipt.flatMap { waiting.removeValue(forKey: $0) }
    }

    /// Counted from now, and anew with each message; zero is for ever.
    private func allowSilence(_ ms: Int) {
        silence?.cancel()
        silenceMs = ms
        if stage == .over || ms == 0 { return }
        silence = Task { [weak self] in
            if await isSlept(ms) { self?.end() }
        }
    }

    private func end(code: Int = 1006, reason: String = "", fault: CallsignError? = nil) {
        if stage == .over { return }
        stage = .over
        silence?.cancel()
        beats?.cancel()
        let unanswered = waiting.values
        waiting = [:]
        for each in unanswered { each.fail(offline()) }
        // A close may be under way; a dead network would hold it up.
        socket.cancel()
        reading?.cancel()
        let retryAfterMs = error?.headers["retry-after"].flatMap(wholeNumber) ?? 0
        closed.complete(
            StompClose(
                code: code,
                reason: reason.isEmpty ? error?.headers["reason"] ?? "" : reason,
                retryAfterMs: min(max(retryAfterMs, 0), Self.retryAfterMsMax),
                error: fault ?? error.map(problem)
            )
        )
    }

    /// The id of the subscription to refusals.
    private static let errors = "errors"
    private static let frameOctetsMaxUsual = 256 * 1024

    /// Far above all that the server sends.
    private static let messageOctetsMax = 1024 * 1024
    private static let silenceGraceMs = 1_000
    private static let disconnectWithinMs = 2_000
    private static let retryAfterMsMax = 600_000
}

/// Two numbers of up to seven digits: how often the sender of the frame sends, and wants to hear, something.
private func heartBeat(in text: String) -> HeartBeatMs? {
    let numbers = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map { digits -> Int? in
        guard (1...7).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { 10 * $0 + Int($1 - 0x30) }
    }
    guard numbers.count == 2, let outgoing = numbers[0], let incoming = numbers[1] else { return nil }
    return HeartBeatMs(outgoing: outgoing, incoming: incoming)
}

private func problem(in frame: StompFrame) -> CallsignError {
    let code = frame.headers["reason"]?.uppercased() ?? CallsignError.LocalCode.answerInvalid
    return errorOf(JSONValue(frame.body), code, "The server ended the connection.")
}

/// False where the task is cancelled before the time is over.
@CallsignActor func isSlept(_ ms: Int) async -> Bool {
    try? await pause(forMs: ms)
    return !Task.isCancelled
}

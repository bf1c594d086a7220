import CallsignApp
import CallsignVerify

/// Requests to the server that a test may hold up before or after they are carried out, and whose answers it may alter.
/// Operations are such as `call/start`, with their query.
public final class AlteredHTTP: HTTPTransport {
    public struct Alterations: Sendable {
        public var before: @Sendable (_ operation: String) async throws -> Void = { _ in }
        public var after: @Sendable (_ operation: String) async throws -> Void = { _ in }
        public var alter: @Sendable (_ operation: String, _ answer: JSONValue) -> JSONValue = { $1 }
    }

    private let http: any HTTPTransport
    private let now = Locked(Alterations())

    public init(_ http: any HTTPTransport = URLSessionHTTP()) { self.http = http }

    public var alterations: Alterations {
        get { now.with { $0 } }
        set { now.with { $0 = newValue } }
    }

    public func send(_ request: HTTPRequest) async throws -> HTTPAnswer {
        guard let at = request.url.range(of: "/app/api/") else { return try await http.send(request) }
        let operation = String(request.url[at.upperBound...])
        try await alterations.before(operation)
        var answer = try await http.send(request)
        try await alterations.after(operation)
        guard (200..<300).contains(answer.status), let value = answer.body.flatMap({ JSONValue(octets: $0) }) else {
            return answer
        }
        answer.body = Array(alterations.alter(operation, value).text.utf8)
        return answer
    }
}

/// Acts at the first operation that is the one.
public func once(
    _ isOne: @escaping @Sendable (_ operation: String) -> Bool,
    _ act: @escaping @Sendable () async throws -> Void
) -> @Sendable (String) async throws -> Void {
    let isLeft = Locked(true)
    return { operation in
        let isNow = isOne(operation) && isLeft.with { isLeft in defer { isLeft = false }; return isLeft }
        if isNow { try await act() }
    }
}

/// Holds up what waits for it.
public final class Gate: Sendable {
    private let reached = Signal()
    private let opened = Signal()

    public init() {}

    public func pass() async {
        reached.give()
        await opened.given()
    }

    public func isReached() async { await reached.given() }

    public func open() { opened.give() }
}

/// Something that happens once, for all who wait for it.
public final class Signal: Sendable {
    private struct State {
        var isGiven = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())

    public init() {}

    public func give() {
        let waiting = state.with { state in
            state.isGiven = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for each in waiting { each.resume() }
    }

    public func given() async {
        await withCheckedContinuation { continuation in
            let isGiven = state.with { state in
                if !state.isGiven { state.waiting.append(continuation) }
                return state.isGiven
            }
            if isGiven { continuation.resume() }
        }
    }
}

/// A request to the server, with all that it needs.
public struct HTTPRequest: Sendable {
    public var method: String
    public var url: String
    public var headers: [String: String]
    public var body: [UInt8]?

    /// A longer body is not read.
    public var octetsMax: Int

    /// From the request to the end of the answer.
    public var timeoutMs: Int

    /// Unless the server has one of these keys, nothing may be sent to it, and `TLSPinMismatch` is thrown. None: any server whose
    /// certificate the system takes.
    public var tlsPins: TLSPins

    public init(
        method: String,
        url: String,
        headers: [String: String] = [:],
        body: [UInt8]? = nil,
        octetsMax: Int,
        timeoutMs: Int,
        tlsPins: TLSPins = .none
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.octetsMax = octetsMax
        self.timeoutMs = timeoutMs
        self.tlsPins = tlsPins
    }
}

public struct HTTPAnswer: Sendable {
    public var status: Int

    /// By names in small letters.
    public var headers: [String: String]

    /// Nil where it is longer than the request allows.
    public var body: [UInt8]?

    public init(status: Int, headers: [String: String] = [:], body: [UInt8]?) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// Sends requests to the server. Redirects are answers like any other: codes and tokens are for this server alone. Throws where
/// there is no answer, and when the task is cancelled.
public protocol HTTPTransport: Sendable {
    func send(_ request: HTTPRequest) async throws -> HTTPAnswer
}

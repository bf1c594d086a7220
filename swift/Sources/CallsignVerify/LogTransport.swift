import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request: a POST of JSON where `body` is not nil, else a GET.
public struct LogRequest: Sendable, Equatable {
    public let url: String
    public let body: String?

    /// Longer answers are of no use.
    public let answerOctetsMax: Int

    package init(url: String, body: String?, answerOctetsMax: Int) {
        self.url = url
        self.body = body
        self.answerOctetsMax = answerOctetsMax
    }
}

/// The answer of any HTTP status.
public struct LogAnswer: Sendable, Equatable {
    public let status: Int
    public let body: [UInt8]

    public init(status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }
}

/// HTTP as the client uses it: one exchange, bounded in octets. An app brings its own to add headers or to pin certificates. It
/// follows no redirects, throws without an answer or above `answerOctetsMax`, and stops when its task is cancelled.
public protocol LogTransport: Sendable {
    func send(_ request: LogRequest) async throws -> LogAnswer
}

/// A request that has no answer.
public struct TransportError: Error, CustomStringConvertible {
    public let description: String
}

/// The platform's own HTTP client. `pauseSeconds` bounds how long it waits for the next octets; `LogClient` bounds the whole.
public final class URLSessionTransport: LogTransport {
    private let exchanges = Exchanges()
    private let session: URLSession

    public init(pauseSeconds: Double = 20) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = pauseSeconds
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    }

    /// A session keeps its delegate until it is told to end.
    deinit { session.finishTasksAndInvalidate() }

    public func send(_ request: LogRequest) async throws -> LogAnswer {
        guard let url = URL(string: request.url) else { throw TransportError(description: "\(request.url) is no URL") }
        var sent = URLRequest(url: url)
        if let body = request.body {
            sent.httpMethod = "POST"
            sent.httpBody = Data(body.utf8)
            sent.setValue("application/json", forHTTPHeaderField: "content-type")
        }
        let task = session.dataTask(with: sent)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiting in
                exchanges.begin(task, Exchange(waiting: waiting, octetsMax: request.answerOctetsMax))
                if Task.isCancelled { exchanges.cancel(task) } else { task.resume() }
            }
        } onCancel: {
            exchanges.cancel(task)
        }
    }
}

/// An exchange that goes on.
private struct Exchange {
    let waiting: CheckedContinuation<LogAnswer, any Error>
    let octetsMax: Int
    var body: [UInt8] = []
}

private final class Exchanges: NSObject, URLSessionDataDelegate {
    private let open = Locked<[Int: Exchange]>([:])

    func begin(_ task: URLSessionTask, _ exchange: Exchange) { open.with { $0[task.taskIdentifier] = exchange } }

    /// Ends the exchange itself: a task that never ran does not say on every system that it was cancelled.
    func cancel(_ task: URLSessionTask) {
        end(task)?.waiting.resume(throwing: CancellationError())
        task.cancel()
    }

    private func end(_ task: URLSessionTask) -> Exchange? { open.with { $0.removeValue(forKey: task.taskIdentifier) } }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let excessive: Exchange? = open.with { open in
            guard var exchange = open.removeValue(forKey: dataTask.taskIdentifier) else { return nil }
            exchange.body += data
            if exchange.body.count > exchange.octetsMax { return exchange }
            open[dataTask.taskIdentifier] = exchange
            return nil
        }
        guard let excessive else { return }
        dataTask.cancel()
        excessive.waiting.resume(throwing: TransportError(description: "an answer has more than \(excessive.octetsMax) bytes"))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let exchange = end(task) else { return }
        if let status = (task.response as? HTTPURLResponse)?.statusCode, error == nil {
            exchange.waiting.resume(returning: LogAnswer(status: status, body: exchange.body))
        } else {
            exchange.waiting.resume(throwing: error ?? TransportError(description: "no answer"))
        }
    }
}

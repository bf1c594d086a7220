import CallsignVerify
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Requests by a `URLSession` of their own, without cookies or a cache. Holds to TLS pins on Apple's systems, and refuses a request
/// that has some on others.
public final class URLSessionHTTP: HTTPTransport {
    private enum Stage {
        case ready
        case begun
        case over
    }

    private let delegate = Delegate()
    private let session: URLSession

    public init() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpShouldSetCookies = false
        configuration.httpCookieAcceptPolicy = .never
        configuration.urlCache = nil
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    deinit {
        // The session keeps itself and its delegate until then.
        session.finishTasksAndInvalidate()
    }

    public func send(_ request: HTTPRequest) async throws -> HTTPAnswer {
        #if !canImport(Security)
            if !request.tlsPins.isEmpty {
                throw CallsignError("TLS_PINS_UNAVAILABLE", "TLS pins are not checked on this system: give the server an HTTPTransport.")
            }
        #endif
        guard let url = URL(string: request.url) else { throw CallsignError("MALFORMED", "That is no address: \(request.url)") }
        var foundation = URLRequest(url: url, timeoutInterval: Double(request.timeoutMs) / 1_000)
        foundation.httpMethod = request.method
        foundation.httpBody = request.body.map { Data($0) }
        for (name, value) in request.headers { foundation.setValue(value, forHTTPHeaderField: name) }
        let task = session.dataTask(with: foundation)
        // The session's own limit is of the time between two packets.
        let limit = Task {
            try await pause(forMs: request.timeoutMs)
            task.cancel()
        }
        defer { limit.cancel() }
        let stage = Locked(Stage.ready)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiting in
                let isBegun = stage.with { stage in
                    if stage == .over { return false }
                    stage = .begun
                    delegate.expect(task, request, waiting)
                    task.resume()
                    return true
                }
                if !isBegun { waiting.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            // One that is cancelled before anybody waits for its end would tell nobody of it.
            let before = stage.with { stage in
                defer { stage = .over }
                return stage
            }
            if before == .begun { task.cancel() }
        }
    }

    private final class Delegate: NSObject, URLSessionDataDelegate, Sendable {
        private struct Pending {
            let octetsMax: Int
            let tlsPins: TLSPins
            let waiting: CheckedContinuation<HTTPAnswer, any Error>
            var body: [UInt8] = []
            var isTooLong = false
            var isMismatch = false
        }

        /// By the number of the task.
        private let pending = Locked<[Int: Pending]>([:])

        func expect(_ task: URLSessionTask, _ request: HTTPRequest, _ waiting: CheckedContinuation<HTTPAnswer, any Error>) {
            let begun = Pending(octetsMax: request.octetsMax, tlsPins: request.tlsPins, waiting: waiting)
            pending.with { $0[task.taskIdentifier] = begun }
        }

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
            let isTooLong = pending.with { pending in
                guard var each = pending[dataTask.taskIdentifier] else { return true }
                // Without a second copy of what has come so far.
                pending[dataTask.taskIdentifier] = nil
                if data.count > each.octetsMax - each.body.count { each.isTooLong = true } else { each.body += data }
                pending[dataTask.taskIdentifier] = each
                return each.isTooLong
            }
            if isTooLong { dataTask.cancel() }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            guard let ended = pending.with({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
            if ended.isMismatch { return ended.waiting.resume(throwing: TLSPinMismatch()) }
            guard let response = task.response as? HTTPURLResponse, error == nil || ended.isTooLong else {
                return ended.waiting.resume(throwing: error ?? URLError(.badServerResponse))
            }
            var headers: [String: String] = [:]
            for (name, value) in response.allHeaderFields {
                if let name = name as? String, let value = value as? String { headers[name.lowercased()] = value }
            }
            let body = ended.isTooLong ? nil : ended.body
            ended.waiting.resume(returning: HTTPAnswer(status: response.statusCode, headers: headers, body: body))
        }

        #if canImport(Security)
            func urlSession(
                _ session: URLSession,
                task: URLSessionTask,
                didReceive challenge: URLAuthenticationChallenge,
                completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) {
                let pins = pending.with { $0[task.taskIdentifier]?.tlsPins } ?? .none
                let answer = answer(to: challenge, pins)
                if answer == .cancelAuthenticationChallenge {
                    pending.with { $0[task.taskIdentifier]?.isMismatch = true }
                }
                completionHandler(answer, nil)
            }
        #endif
    }
}

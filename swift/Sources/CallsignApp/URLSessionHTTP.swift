import CallsignVerify
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Requests by a `URLSession` of their own, without cookies or a cache. Holds to TLS pins on Apple's systems, and refuses a
/// request that has some on others.
public final class URLSessionHTTP: HTTPTransport {
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
                let sentence = "TLS pins are not checked on this system: give the server an HTTPTransport."
                throw CallsignError("TLS_PINS_UNAVAILABLE", sentence)
            }
        #endif
        guard let url = URL(string: request.url) else { throw CallsignError("MALFORMED", "That is no address: \(request.url)") }
        var foundation = URLRequest(url: url, timeoutInterval: Double(request.timeoutMs) / 1_000)
        foundation.httpMethod = request.method
        foundation.httpBody = request.body.map { Data($0) }
        for (name, value) in request.headers { foundation.setValue(value, forHTTPHeaderField: name) }
        try Task.checkCancellation()
        let task = session.dataTask(with: foundation)
        // The session's own limit is of the time between two packets.
        let limit = Task { [delegate] in
            try await Task.sleep(nanoseconds: UInt64(request.timeoutMs) * 1_000_000)
            delegate.giveUp(task, URLError(.timedOut))
        }
        defer { limit.cancel() }
        do {
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { waiting in
                    delegate.expect(task, request, waiting)
                    task.resume()
                    // It may have been cancelled before the delegate knew of it.
                    if Task.isCancelled { delegate.giveUp(task, CancellationError()) }
                }
            } onCancel: {
                delegate.giveUp(task, CancellationError())
            }
        } catch {
            try Task.checkCancellation()
            throw error
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

        /// Not every system tells of a task that is cancelled while it begins.
        func giveUp(_ task: URLSessionTask, _ error: any Error) {
            let ended = pending.with { $0.removeValue(forKey: task.taskIdentifier) }
            task.cancel()
            ended?.waiting.resume(throwing: error)
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

#if canImport(Security)
    import CallsignVerify
    import Foundation

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// WebSockets by `URLSessionWebSocketTask`. Holds to TLS pins.
    public final class URLSessionSockets: SocketTransport {
        public init() {}

        public func open(_ request: SocketRequest) throws -> any Socket {
            let url = try addressOfSocket(request.url)
            var foundation = URLRequest(url: url)
            foundation.setValue(request.subprotocol, forHTTPHeaderField: "Sec-WebSocket-Protocol")
            let delegate = Delegate(request.tlsPins)
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let task = session.webSocketTask(with: foundation)
            task.maximumMessageSize = request.messageOctetsMax
            task.resume()
            // The task goes on; then the session lets go of its delegate.
            session.finishTasksAndInvalidate()
            return Opened(task, delegate)
        }

        private final class Opened: Socket {
            private let task: URLSessionWebSocketTask
            let incoming: AsyncStream<SocketEvent>

            init(_ task: URLSessionWebSocketTask, _ delegate: Delegate) {
                self.task = task
                let hasEnded = Locked(false)
                let isOpen = Locked(false)
                incoming = AsyncStream {
                    if hasEnded.with({ $0 }) { return nil }
                    if !isOpen.with({ value in defer { value = true }; return value }) {
                        for await _ in delegate.opened { return .open }
                    }
                    do {
                        switch try await task.receive() {
                        case .string(let text): return .text(text)
                        // Bodies that are no text; an app has no use for them.
                        default: return .text("\n")
                        }
                    } catch {
                        hasEnded.with { $0 = true }
                        let code = task.closeCode == .invalid ? 1006 : task.closeCode.rawValue
                        let reason = task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? ""
                        return .closed(code: code, reason: reason)
                    }
                }
            }

            func send(_ text: String) {
                task.send(.string(text)) { _ in
                    // A send that fails ends the socket, which `receive` tells.
                }
            }

            func cancel() { task.cancel() }
        }

        private final class Delegate: NSObject, URLSessionWebSocketDelegate, Sendable {
            /// Has one element when the socket is open, and ends when it can't be any more.
            let opened: AsyncStream<Void>
            private let telling: AsyncStream<Void>.Continuation
            private let tlsPins: TLSPins

            init(_ tlsPins: TLSPins) {
                self.tlsPins = tlsPins
                (opened, telling) = AsyncStream<Void>.makeStream()
            }

            func urlSession(
                _ session: URLSession,
                webSocketTask: URLSessionWebSocketTask,
                didOpenWithProtocol protocol: String?
            ) {
                telling.yield()
                telling.finish()
            }

            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                telling.finish()
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

            func urlSession(
                _ session: URLSession,
                task: URLSessionTask,
                didReceive challenge: URLAuthenticationChallenge,
                completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) {
                completionHandler(answer(to: challenge, tlsPins), nil)
            }
        }
    }

    /// `ws:` for `http:`. Throws `MALFORMED` for what is no address.
    private func addressOfSocket(_ url: String) throws -> URL {
        let isPlain = URLComponents(string: url)?.scheme == "http"
        var parts = URLComponents(string: url)
        parts?.scheme = isPlain ? "ws" : "wss"
        guard let address = parts?.url else { throw CallsignError("MALFORMED", "That is no address: \(url)") }
        return address
    }
#endif

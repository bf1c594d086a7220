/// One after the other, in the order in which they came, also across an `await`.
final class Turn: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())

    /// Throws `CancellationError` where the task was cancelled before its turn came.
    func one<Value>(_ act: () async throws -> Value) async throws -> Value {
        await take()
        defer { pass() }
        try Task.checkCancellation()
        return try await act()
    }

    private func take() async {
        await withCheckedContinuation { continuation in
            let isFree = state.with { state in
                if state.isTaken { state.waiting.append(continuation) }
                defer { state.isTaken = true }
                return !state.isTaken
            }
            if isFree { continuation.resume() }
        }
    }

    private func pass() {
        let next: CheckedContinuation<Void, Never>? = state.with { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.isTaken = false
            return nil
        }
        next?.resume()
    }
}

/// One after the other, in the order in which they came, also across an `await`.
final class Turn: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [(ticket: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var tickets = 0
    }

    private let state = Locked(State())

    /// Throws `CancellationError` at once where the task is cancelled before its turn has come.
    func one<Value>(_ act: () async throws -> Value) async throws -> Value {
        guard await take() else { throw CancellationError() }
        defer { pass() }
        try Task.checkCancellation()
        return try await act()
    }

    /// False where the task was cancelled.
    private func take() async -> Bool {
        let ticket = state.with { state in
            state.tickets &+= 1
            return state.tickets
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isTaken: Bool? = state.with { state in
                    // Whoever cancels from here on finds the one that waits.
                    if Task.isCancelled { return false }
                    guard state.isTaken else {
                        state.isTaken = true
                        return true
                    }
                    state.waiting.append((ticket, continuation))
                    return nil
                }
                if let isTaken { continuation.resume(returning: isTaken) }
            }
        } onCancel: {
            let cancelled = state.with { state in
                state.waiting.firstIndex { $0.ticket == ticket }.map { state.waiting.remove(at: $0).continuation }
            }
            cancelled?.resume(returning: false)
        }
    }

    private func pass() {
        let next: CheckedContinuation<Bool, Never>? = state.with { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst().continuation }
            state.isTaken = false
            return nil
        }
        next?.resume(returning: true)
    }
}

/// A value that comes later, once, for all who wait for it.
@CallsignActor final class Deferred<Value: Sendable> {
    private var result: Result<Value, any Error>?
    private var waiting: [CheckedContinuation<Value, any Error>] = []

    nonisolated init() {}

    var isCompleted: Bool { result != nil }

    var value: Value {
        get async throws {
            if let result { return try result.get() }
            return try await withCheckedThrowingContinuation { waiting.append($0) }
        }
    }

    /// As `value`, but throws `CancellationError` once the caller is cancelled.
    var valueUnlessCancelled: Value {
        get async throws {
            let mine = Deferred()
            Task {
                do { mine.complete(try await value) } catch { mine.fail(error) }
            }
            return try await withTaskCancellationHandler {
                try await mine.value
            } onCancel: {
                Task { @CallsignActor in mine.fail(CancellationError()) }
            }
        }
    }

    /// The first one counts.
    func complete(_ value: Value) { settle(.success(value)) }

    func fail(_ error: any Error) { settle(.failure(error)) }

    private func settle(_ settled: Result<Value, any Error>) {
        guard result == nil else { return }
        result = settled
        let all = waiting
        waiting = []
        for each in all { each.resume(with: settled) }
    }
}

/// One after the other, in the order in which they came, also across an `await`.
@CallsignActor final class Turns {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    nonisolated init() {}

    func one<Value>(_ act: @CallsignActor () async throws -> Value) async rethrows -> Value {
        if isTaken {
            await withCheckedContinuation { waiting.append($0) }
        }
        isTaken = true
        defer {
            if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
        }
        return try await act()
    }
}

/// Waits for so many milliseconds, and for a day at the longest: a server may name a time whose nanoseconds no number has. Throws when
/// the task is cancelled.
func pause(forMs ms: Int) async throws {
    try await Task.sleep(nanoseconds: UInt64(min(max(ms, 0), 86_400_000)) * 1_000_000)
}

import CallsignVerify

/// A value that changes, to show: `value` is it now, and `values` tells of each change. A reader that is slow gets the newest
/// only.
public final class Watched<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var readers: [Int: AsyncStream<Value>.Continuation] = [:]
        var count = 0
    }

    private let state: Locked<State>

    init(_ value: Value) { state = Locked(State(value: value)) }

    deinit {
        // Who reads learns that nothing more comes.
        for reader in state.with({ $0.readers.values }) { reader.finish() }
    }

    public var value: Value { state.with { $0.value } }

    /// The value as it is now, then as it becomes.
    public var values: AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { reader in
            let number = state.with { state in
                state.count += 1
                state.readers[state.count] = reader
                reader.yield(state.value)
                return state.count
            }
            reader.onTermination = { [weak self] _ in self?.forget(number) }
        }
    }

    /// Whether anybody reads `values` now.
    var isRead: Bool { state.with { !$0.readers.isEmpty } }

    func set(_ value: Value) { set(value, unless: { _, _ in false }) }

    fileprivate func set(_ value: Value, unless isSame: (Value, Value) -> Bool) {
        state.with { state in
            if isSame(state.value, value) { return }
            state.value = value
            for reader in state.readers.values { reader.yield(value) }
        }
    }

    private func forget(_ number: Int) {
        state.with { _ = $0.readers.removeValue(forKey: number) }
    }
}

extension Watched where Value: Equatable {
    /// An equal value is no change.
    func set(_ value: Value) { set(value, unless: ==) }
}

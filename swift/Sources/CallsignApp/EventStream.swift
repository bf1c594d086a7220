import CallsignVerify

/// Events for each reader of `events`, in order. One that is more than `capacity` behind holds up nobody: it misses the oldest,
/// and is told how many by `missed` in their place, if there is one.
final class EventStream<Event: Sendable>: Sendable {
    private struct Numbered: Sendable {
        let number: Int
        let event: Event
    }

    private struct State {
        var count = 0

        /// Who comes later gets only this one.
        var last: Event?
        var readers: [Int: AsyncStream<Numbered>.Continuation] = [:]
        var readerCount = 0
    }

    private let capacity: Int
    private let missed: (@Sendable (_ count: Int) -> Event)?
    private let state = Locked(State())

    init(_ capacity: Int, missed: (@Sendable (_ count: Int) -> Event)? = nil) {
        self.capacity = capacity
        self.missed = missed
    }

    deinit {
        // Who reads learns that nothing more comes.
        for reader in state.with({ $0.readers.values }) { reader.finish() }
    }

    /// Those from now on. It ends behind the last one.
    var events: AsyncStream<Event> {
        var begun = 0
        let numbered = AsyncStream<Numbered>(bufferingPolicy: .bufferingNewest(capacity)) { reader in
            begun = begin(reader)
        }
        let reading = Reading(numbered, from: begun, missed)
        return AsyncStream { await reading.next() }
    }

    func tell(_ event: Event) { state.with { Self.tell(event, &$0) } }

    func tellLast(_ event: Event) {
        // At once: a reader that comes between would get neither.
        let readers = state.with { state in
            Self.tell(event, &state)
            if state.last == nil { state.last = event }
            return state.readers.values
        }
        for reader in readers { reader.finish() }
    }

    private static func tell(_ event: Event, _ state: inout State) {
        guard state.last == nil else { return }
        for reader in state.readers.values { reader.yield(Numbered(number: state.count, event: event)) }
        state.count += 1
    }

    /// Returns the number of the first event that the reader will get.
    private func begin(_ reader: AsyncStream<Numbered>.Continuation) -> Int {
        let (last, from, number) = state.with { state in
            state.readerCount += 1
            if state.last == nil { state.readers[state.readerCount] = reader }
            return (state.last, state.count, state.readerCount)
        }
        if let last {
            reader.yield(Numbered(number: from, event: last))
            reader.finish()
        } else {
            reader.onTermination = { [weak self] _ in self?.forget(number) }
        }
        return from
    }

    private func forget(_ number: Int) {
        state.with { _ = $0.readers.removeValue(forKey: number) }
    }

    /// One reader's place. Streams are read by one task at a time.
    private final class Reading: @unchecked Sendable {
        private var iterator: AsyncStream<Numbered>.Iterator
        private var expected: Int
        private var held: Event?
        private let missed: (@Sendable (Int) -> Event)?

        init(_ numbered: AsyncStream<Numbered>, from expected: Int, _ missed: (@Sendable (Int) -> Event)?) {
            iterator = numbered.makeAsyncIterator()
            self.expected = expected
            self.missed = missed
        }

        func next() async -> Event? {
            if let held {
                self.held = nil
                return held
            }
            guard let next = await iterator.next() else { return nil }
            let missedCount = next.number - expected
            expected = next.number + 1
            guard missedCount > 0, let missed else { return next.event }
            held = next.event
            return missed(missedCount)
        }
    }
}

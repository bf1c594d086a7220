private let clock = ContinuousClock()
private let start = clock.now

/// Milliseconds since some moment, by a clock that nobody sets; it goes on while the phone sleeps.
func monotonicNowMs() -> Int {
    let passed = start.duration(to: clock.now).components
    return Int(passed.seconds) * 1_000 + Int(passed.attoseconds / 1_000_000_000_000_000)
}

/// Where this package does its work: one step at a time, so that what its parts hold needs no lock. Awaiting lets others go on.
@globalActor public actor CallsignActor {
    public static let shared = CallsignActor()
}

/// Goes on to its end where the caller is cancelled: half an operation would leave a call between two states.
@CallsignActor func uncancelled<Value: Sendable>(_ act: @CallsignActor @escaping () async throws -> Value) async throws -> Value {
    try await Task { try await act() }.value
}

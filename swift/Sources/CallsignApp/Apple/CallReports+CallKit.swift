#if canImport(CallKit) && !os(macOS)
import CallKit

// What CallKit has to be told, in its own types.

extension CallReport {
    /// One call at a time: nothing is held or joined.
    public func callUpdate() -> CXCallUpdate {
        let update = CXCallUpdate()
        update.remoteHandle = CXHandle(type: .generic, value: handle)
        update.localizedCallerName = caller.text()
        update.hasVideo = isVideo
        update.supportsHolding = false
        update.supportsGrouping = false
        update.supportsUngrouping = false
        update.supportsDTMF = false
        return update
    }

    /// Reports the call, and its end where it has ended. Call it before PushKit's handler returns. `completion` says whether the
    /// call rings: it does not where it is over, rings already, or the user wants no calls now.
    public func report(to provider: CXProvider, completion: @escaping @Sendable (Bool) -> Void) {
        let (uuid, endsAs) = (uuid, endsAs)
        provider.reportNewIncomingCall(with: uuid, update: callUpdate()) { error in completion(error == nil && endsAs == nil) }
        if let endsAs { provider.reportCall(with: uuid, endedAt: nil, reason: endsAs.callKit) }
    }
}

extension SystemEnd {
    public var callKit: CXCallEndedReason { CXCallEndedReason(rawValue: rawValue) ?? .failed }
}
#endif

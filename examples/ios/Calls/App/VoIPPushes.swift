import CallsignApp
import PushKit

/// Pushes that ring. iOS starts the app for them, also behind the lock screen.
@MainActor final class VoIPPushes: NSObject {
    private let registry = PKPushRegistry(queue: .main)
    private let pushes: Pushes

    init(_ pushes: Pushes) {
        self.pushes = pushes
        super.init()
        registry.delegate = self
        registry.desiredPushTypes = [.voIP]
    }
}

/// PushKit calls these on the main queue.
extension VoIPPushes: @preconcurrency PKPushRegistryDelegate {
    func pushRegistry(_ registry: PKPushRegistry, didUpdate credentials: PKPushCredentials, for type: PKPushType) {
        pushes.send(voipToken: credentials.token)
    }

    /// Up to iOS 26.3.
    func pushRegistry(
        _ registry: PKPushRegistry, didReceiveIncomingPushWith payload: PKPushPayload, for type: PKPushType,
        completion: @escaping () -> Void
    ) {
        pushes.receiveVoIP(payload.dictionaryPayload, mustReport: true) { completion() }
    }

    @available(iOS 26.4, *)
    func pushRegistry(
        _ registry: PKPushRegistry, didReceiveIncomingVoIPPushWith payload: PKPushPayload, metadata: PKVoIPPushMetadata,
        withCompletionHandler completion: @escaping @Sendable () -> Void
    ) {
        pushes.receiveVoIP(payload.dictionaryPayload, mustReport: metadata.mustReport) { completion() }
    }
}

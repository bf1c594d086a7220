import CallsignApp
import Foundation

/// What the app does with pushes, and with the tokens that they need.
@MainActor final class Pushes {
    private let me: Callsign
    private let phone: Phone
    private let asking: Asking
    private var tokens = PushTokens()

    init(_ me: Callsign, _ phone: Phone, _ asking: Asking) {
        self.me = me
        self.phone = phone
        self.asking = asking
    }

    /// PushKit's. The system hears of the call before this returns: not the network, the keychain or the socket is waited for.
    func receiveVoIP(_ payload: [AnyHashable: Any], mustReport: Bool, _ done: @escaping @MainActor () -> Void) {
        let members = pushMembers(payload)
        let action = judgeVoIPPush(
            members, deviceId: keptDeviceId, serverNowMs: nil, rings: phone.rings, mustReport: mustReport)
        if case .report(let report) = action { phone.ring(report, done) } else { done() }
        asking.start { [self] in show(try await me.onPush(members)) }
    }

    /// By the server's time, once the device is connected.
    private func show(_ action: PushAction) {
        switch action {
        case .over(let call): phone.stop(call.uuid, .unanswered)
        case .stopRinging(_, let uuid, let reason, _): phone.stop(uuid, SystemEnd(reason))
        case .ringing, .notice, .nothing: return
        }
    }

    /// Sent at each start and after each sign-in, and when the system gives a new one.
    func send(apnsToken: Data? = nil, voipToken: Data? = nil) {
        if let apnsToken { tokens.apnsToken = hexadecimal(apnsToken) }
        if let voipToken { tokens.apnsVoipToken = hexadecimal(voipToken) }
        tokens.bundleId = Bundle.main.bundleIdentifier
        tokens.apnsEnvironment = apnsEnvironment
        asking.start { [self] in
            guard try await me.resume() != nil else { return }
            keptDeviceId = me.deviceId
            try await me.devices.putPush(tokens)
        }
    }

    /// Where a push finds it at once. It is no secret.
    private var keptDeviceId: UInt64? {
        get { UserDefaults.standard.string(forKey: "deviceId").flatMap { UInt64($0) } }
        set { UserDefaults.standard.set(newValue.map { "\($0)" }, forKey: "deviceId") }
    }
}

private func hexadecimal(_ token: Data) -> String { token.map { String(format: "%02x", $0) }.joined() }

#if DEBUG
/// Xcode signs what it runs for Apple's other host.
private let apnsEnvironment = "development"
#else
private let apnsEnvironment = "production"
#endif

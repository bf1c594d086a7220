import CallsignApp
import Intents
import SwiftUI
import UserNotifications

@main struct CallsApp: App {
    @UIApplicationDelegateAdaptor(AppDelegate.self) private var delegate

    var body: some Scene {
        WindowGroup {
            MainView(model: delegate.model, phone: delegate.model.phone, asking: delegate.model.asking)
                .onOpenURL { delegate.model.find($0.absoluteString) }
                .onContinueUserActivity("INStartCallIntent") { startCall($0) }
        }
    }

    /// From the phone's list of calls, or a headset that calls the last person again.
    private func startCall(_ activity: NSUserActivity) {
        guard let intent = activity.interaction?.intent as? INStartCallIntent,
            let handle = intent.contacts?.first?.personHandle?.value
        else { return }
        delegate.model.call(handle: handle, isVideo: intent.callCapability == .videoCall)
    }
}

/// There before any screen: a push starts the app without one.
final class AppDelegate: NSObject, UIApplicationDelegate {
    let model: CallsModel
    private let callKit: CallKitPhone
    private let voipPushes: VoIPPushes

    override init() {
        let storage = KeychainAppStorage()
        let phone = UIDevice.current
        let device = DeviceDetails(
            platform: "ios", name: phone.name, model: phone.model, osVersion: phone.systemVersion)
        model = CallsModel(callsign(storage, keysOf(storage), device, ApplePasskeys(window: keyWindow)))
        callKit = CallKitPhone(model.phone)
        voipPushes = VoIPPushes(model.pushes)
        super.init()
        model.phone.system = callKit
    }

    func application(
        _ application: UIApplication, didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool {
        UNUserNotificationCenter.current().delegate = self
        // For the pushes that are no calls. Calls ring without asking.
        application.registerForRemoteNotifications()
        model.start()
        return true
    }

    func application(_ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken token: Data) {
        model.pushes.send(apnsToken: token)
    }
}

/// The simulator has no Secure Enclave.
private func keysOf(_ storage: KeychainAppStorage) -> DeviceKeysOf {
    guard SecureEnclaveDeviceKeys.isAvailable else { return softwareKeys(storage) }
    return { userId in try await SecureEnclaveDeviceKeys.of(userId: userId, in: storage) }
}

/// The one in front, which iOS asks for a passkey over.
@MainActor private func keyWindow() -> UIWindow {
    let scenes = UIApplication.shared.connectedScenes.lazy.compactMap { $0 as? UIWindowScene }
    return scenes.compactMap(\.keyWindow).first ?? UIWindow()
}

extension AppDelegate: @preconcurrency UNUserNotificationCenterDelegate {
    /// Also while the app is in front.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions { [.banner, .sound, .list] }
}

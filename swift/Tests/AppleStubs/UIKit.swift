@_exported import Foundation

@MainActor public class UIWindow: NSObject {
    public override nonisolated init() { fatalError() }
}

@MainActor public class UIScene: NSObject {}

@MainActor public class UIWindowScene: UIScene {
    public var keyWindow: UIWindow? { fatalError() }
}

@MainActor public class UIApplication: NSObject {
    public var connectedScenes: Set<UIScene> { fatalError() }
    public struct LaunchOptionsKey: Hashable, Sendable {}
    public class var shared: UIApplication { fatalError() }
    public func registerForRemoteNotifications() { fatalError() }
}

@MainActor public protocol UIApplicationDelegate: AnyObject {
    func application(
        _ application: UIApplication, didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?) -> Bool
    func application(_ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data)
}

extension UIApplicationDelegate {
    public func application(
        _ application: UIApplication, didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?) -> Bool
    { fatalError() }
    public func application(_ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data) {
        fatalError()
    }
}

@MainActor public class UIDevice: NSObject {
    public class var current: UIDevice { fatalError() }
    public var model: String { fatalError() }
    public var name: String { fatalError() }
    public var systemVersion: String { fatalError() }
}

@MainActor public class UIPasteboard: NSObject {
    public class var general: UIPasteboard { fatalError() }
    public var string: String? { get { fatalError() } set { fatalError() } }
}

/// Of Foundation on Apple's systems.
open class NSUserActivity: NSObject {
    public var activityType: String { fatalError() }
    public var webpageURL: URL? { fatalError() }
}

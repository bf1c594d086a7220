@_exported import Foundation

public class UNNotificationSound: NSObject, @unchecked Sendable {
    public class var `default`: UNNotificationSound { fatalError() }
}

public class UNNotificationContent: NSObject, @unchecked Sendable {
    public var title: String { fatalError() }
    public var body: String { fatalError() }
    public var userInfo: [AnyHashable: Any] { fatalError() }
    public override func mutableCopy() -> Any { fatalError() }
}

public class UNMutableNotificationContent: UNNotificationContent, @unchecked Sendable {
    public override init() { fatalError() }
    public override var title: String { get { fatalError() } set { fatalError() } }
    public override var body: String { get { fatalError() } set { fatalError() } }
    public override var userInfo: [AnyHashable: Any] { get { fatalError() } set { fatalError() } }
    public var badge: NSNumber? { get { fatalError() } set { fatalError() } }
    public var sound: UNNotificationSound? { get { fatalError() } set { fatalError() } }
}

public class UNNotificationTrigger: NSObject {}

public class UNNotificationRequest: NSObject, @unchecked Sendable {
    public init(identifier: String, content: UNNotificationContent, trigger: UNNotificationTrigger?) { fatalError() }
    public var identifier: String { fatalError() }
    public var content: UNNotificationContent { fatalError() }
}

public class UNNotification: NSObject, @unchecked Sendable {
    public var request: UNNotificationRequest { fatalError() }
}

public class UNNotificationResponse: NSObject, @unchecked Sendable {
    public var notification: UNNotification { fatalError() }
    public var actionIdentifier: String { fatalError() }
}

public struct UNNotificationPresentationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var banner: Self { fatalError() }
    public static var sound: Self { fatalError() }
    public static var badge: Self { fatalError() }
    public static var list: Self { fatalError() }
}

public struct UNAuthorizationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var alert: Self { fatalError() }
    public static var sound: Self { fatalError() }
    public static var badge: Self { fatalError() }
}

public protocol UNUserNotificationCenterDelegate: AnyObject {
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification) async -> UNNotificationPresentationOptions
    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async
}

extension UNUserNotificationCenterDelegate {
    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification) async -> UNNotificationPresentationOptions
    { fatalError() }
    public func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
        fatalError()
    }
}

public class UNUserNotificationCenter: NSObject, @unchecked Sendable {
    public class func current() -> UNUserNotificationCenter { fatalError() }
    public weak var delegate: (any UNUserNotificationCenterDelegate)?
    public func requestAuthorization(options: UNAuthorizationOptions) async throws -> Bool { fatalError() }
    public func add(_ request: UNNotificationRequest) async throws { fatalError() }
    public func setBadgeCount(_ count: Int) async throws { fatalError() }
    public func removeDeliveredNotifications(withIdentifiers identifiers: [String]) { fatalError() }
}

open class UNNotificationServiceExtension: NSObject {
    public override init() { fatalError() }
    open func didReceive(
        _ request: UNNotificationRequest, withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
    ) { fatalError() }
    open func serviceExtensionTimeWillExpire() { fatalError() }
}

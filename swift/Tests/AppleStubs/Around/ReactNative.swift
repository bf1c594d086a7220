// What stands around the Swift of docs/build/react-native.md: the template's class, and two classes of the bridging header.

import Foundation
import PushKit

class AppDelegate: NSObject {}

class RNVoipPushNotificationManager: NSObject {
    class func didUpdate(_ credentials: PKPushCredentials, forType type: String) {}
    class func didReceiveIncomingPush(with payload: PKPushPayload, forType type: String) {}
}

class RNCallKeep: NSObject {
    class func reportNewIncomingCall(
        _ uuidString: String, handle: String, handleType: String, hasVideo: Bool, localizedCallerName: String?,
        supportsHolding: Bool, supportsDTMF: Bool, supportsGrouping: Bool, supportsUngrouping: Bool, fromPushKit: Bool,
        payload: [AnyHashable: Any]?, withCompletionHandler completion: (() -> Void)?
    ) {}
}

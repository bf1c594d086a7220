@_exported import Foundation
import UIKit

public class INPersonHandle: NSObject, @unchecked Sendable {
    public enum HandleType: Int, Sendable { case unknown, emailAddress, phoneNumber }
    public init(value: String?, type: HandleType) { fatalError() }
    public var value: String? { fatalError() }
}

public class INPerson: NSObject, @unchecked Sendable {
    public var personHandle: INPersonHandle? { fatalError() }
    public var customIdentifier: String? { fatalError() }
}

public enum INCallCapability: Int, Sendable { case unknown, audioCall, videoCall }

public class INIntent: NSObject, @unchecked Sendable {}

public class INStartCallIntent: INIntent, @unchecked Sendable {
    public var contacts: [INPerson]? { fatalError() }
    public var callCapability: INCallCapability { fatalError() }
}

public class INInteraction: NSObject, @unchecked Sendable {
    public var intent: INIntent { fatalError() }
}

extension NSUserActivity {
    public var interaction: INInteraction? { fatalError() }
}

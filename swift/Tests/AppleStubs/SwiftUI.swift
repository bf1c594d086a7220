@_exported import Combine
@_exported import Foundation
@_exported import UIKit

@MainActor public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {
    public var body: Never { return fatalError() }
}

/// Each view here that has no body.
@MainActor public protocol Leaf: View where Body == Never {}
extension Leaf { public var body: Never { return fatalError() } }

@resultBuilder public struct ViewBuilder {
    public static func buildBlock() -> EmptyView { fatalError() }
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> Group { fatalError() }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { fatalError() }
    public static func buildEither<Content: View>(first: Content) -> AnyView { fatalError() }
    public static func buildEither<Content: View>(second: Content) -> AnyView { fatalError() }
    public static func buildLimitedAvailability<Content: View>(_ content: Content) -> AnyView { fatalError() }
}

extension Optional: View where Wrapped: View { public var body: Never { return fatalError() } }

public struct EmptyView: Leaf { public init() { fatalError() } }
public struct AnyView: Leaf { public init<Content: View>(_ content: Content) { fatalError() } }
public struct Group: Leaf { public init<Content: View>(@ViewBuilder content: () -> Content) { fatalError() } }
public struct VStack: Leaf {
    public init<Content: View>(alignment: HorizontalAlignment = .center, spacing: Double? = nil, @ViewBuilder content: () -> Content) {
        fatalError()
    }
}
public struct HStack: Leaf {
    public init<Content: View>(spacing: Double? = nil, @ViewBuilder content: () -> Content) { fatalError() }
}
public struct Spacer: Leaf { public init() { fatalError() } }
public struct Divider: Leaf { public init() { fatalError() } }
public struct ProgressView: Leaf { public init() { fatalError() } }
public struct NavigationStack: Leaf { public init<Content: View>(@ViewBuilder root: () -> Content) { fatalError() } }
public struct Form: Leaf { public init<Content: View>(@ViewBuilder content: () -> Content) { fatalError() } }
public struct Section: Leaf {
    public init<Content: View>(@ViewBuilder content: () -> Content) { fatalError() }
    public init<Content: View>(_ title: LocalizedStringKey, @ViewBuilder content: () -> Content) { fatalError() }
}
public struct List: Leaf {
    public init<Content: View>(@ViewBuilder content: () -> Content) { fatalError() }
    public init<Data: RandomAccessCollection, Row: View>(_ data: Data, @ViewBuilder rowContent: @escaping (Data.Element) -> Row)
    where Data.Element: Identifiable { fatalError() }
}
public struct ForEach: Leaf {
    public init<Data: RandomAccessCollection, Row: View>(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Row)
    where Data.Element: Identifiable { fatalError() }
    public init<Data: RandomAccessCollection, ID: Hashable, Row: View>(
        _ data: Data, id: KeyPath<Data.Element, ID>, @ViewBuilder content: @escaping (Data.Element) -> Row) { fatalError() }
}

public enum HorizontalAlignment: Sendable { case leading, center, trailing }

public struct LocalizedStringKey: ExpressibleByStringInterpolation, Sendable {
    public init(stringLiteral value: String) { fatalError() }
    public init(_ value: String) { fatalError() }
}

public struct Text: Leaf {
    public init(_ key: LocalizedStringKey) { fatalError() }
    @_disfavoredOverload public init<S: StringProtocol>(_ content: S) { fatalError() }
    public init(verbatim content: String) { fatalError() }
}

public struct Label: Leaf {
    public init(_ key: LocalizedStringKey, systemImage: String) { fatalError() }
}

public struct Image: Leaf { public init(systemName: String) { fatalError() } }

public struct ButtonRole: Sendable {
    public static var destructive: ButtonRole { fatalError() }
    public static var cancel: ButtonRole { fatalError() }
}

public struct Button: Leaf {
    public init(_ key: LocalizedStringKey, role: ButtonRole? = nil, action: @escaping @MainActor () -> Void) { fatalError() }
    @_disfavoredOverload
    public init<S: StringProtocol>(_ title: S, role: ButtonRole? = nil, action: @escaping @MainActor () -> Void) { fatalError() }
    public init<Content: View>(
        role: ButtonRole? = nil, action: @escaping @MainActor () -> Void, @ViewBuilder label: () -> Content) { fatalError() }
}

public struct TextField: Leaf {
    public init(_ key: LocalizedStringKey, text: Binding<String>) { fatalError() }
    @_disfavoredOverload public init<S: StringProtocol>(_ title: S, text: Binding<String>) { fatalError() }
}
public struct Toggle: Leaf { public init(_ key: LocalizedStringKey, isOn: Binding<Bool>) { fatalError() } }

public struct ShareLink: Leaf {
    public init(_ key: LocalizedStringKey, item: URL) { fatalError() }
    public init(_ key: LocalizedStringKey, item: String) { fatalError() }
}

public struct Font: Sendable {
    public static var title: Font { fatalError() }
    public static var headline: Font { fatalError() }
    public static var callout: Font { fatalError() }
    public static var footnote: Font { fatalError() }
    public static var body: Font { fatalError() }
    public func monospaced() -> Font { fatalError() }
    public func monospacedDigit() -> Font { fatalError() }
}

public struct Color: Leaf, Sendable {
    public nonisolated static var red: Color { fatalError() }
    public nonisolated static var secondary: Color { fatalError() }
}

public struct UITextContentType: Sendable {
    public static var emailAddress: Self { fatalError() }
    public static var oneTimeCode: Self { fatalError() }
    public static var username: Self { fatalError() }
}
public enum UIKeyboardType: Sendable { case `default`, emailAddress, numberPad, URL }
public struct TextInputAutocapitalization: Sendable { public static var never: Self { fatalError() } }

extension View {
    public func font(_ font: Font?) -> some View { self }
    public func foregroundStyle(_ color: Color) -> some View { self }
    public func padding(_ length: Double? = nil) -> some View { self }
    public func disabled(_ disabled: Bool) -> some View { self }
    public func navigationTitle(_ key: LocalizedStringKey) -> some View { self }
    @_disfavoredOverload public func navigationTitle<S: StringProtocol>(_ title: S) -> some View { self }
    public func textContentType(_ type: UITextContentType?) -> some View { self }
    public func keyboardType(_ type: UIKeyboardType) -> some View { self }
    public func textInputAutocapitalization(_ value: TextInputAutocapitalization?) -> some View { self }
    public func autocorrectionDisabled(_ disable: Bool = true) -> some View { self }
    public func accessibilityLabel(_ key: LocalizedStringKey) -> some View { self }
    public func onOpenURL(perform action: @escaping @MainActor (URL) -> Void) -> some View { self }
    public func onAppear(perform action: (@MainActor () -> Void)? = nil) -> some View { self }
    public func onSubmit(_ action: @escaping @MainActor () -> Void) -> some View { self }
    public func task(_ action: @escaping @MainActor @Sendable () async -> Void) -> some View { self }
    public func task<T: Equatable>(id: T, _ action: @escaping @MainActor @Sendable () async -> Void) -> some View { self }
    public func onContinueUserActivity(_ type: String, perform action: @escaping @MainActor (NSUserActivity) -> Void) -> some View { self }
    public func buttonStyle(_ style: ButtonStyles) -> some View { self }
    public func textSelection(_ selectability: Selectability) -> some View { self }
    public func toolbar<Content: View>(@ViewBuilder content: () -> Content) -> some View { self }
    public func environmentObject<Object: ObservableObject>(_ object: Object) -> some View { self }
    public func alert<Actions: View>(
        _ key: LocalizedStringKey, isPresented: Binding<Bool>, @ViewBuilder actions: () -> Actions) -> some View { self }
    public func alert<Actions: View, Message: View>(
        _ key: LocalizedStringKey, isPresented: Binding<Bool>, @ViewBuilder actions: () -> Actions,
        @ViewBuilder message: () -> Message) -> some View { self }
    @_disfavoredOverload public func alert<S: StringProtocol, Actions: View, Message: View>(
        _ title: S, isPresented: Binding<Bool>, @ViewBuilder actions: () -> Actions,
        @ViewBuilder message: () -> Message) -> some View { self }
    public func sheet<Content: View>(isPresented: Binding<Bool>, @ViewBuilder content: @escaping () -> Content) -> some View { self }
    public func fullScreenCover<Content: View>(isPresented: Binding<Bool>, @ViewBuilder content: @escaping () -> Content) -> some View {
        self
    }
}

public struct ButtonStyles: Sendable {
    public static var borderedProminent: Self { fatalError() }
    public static var bordered: Self { fatalError() }
}
public struct Selectability: Sendable { public static var enabled: Self { fatalError() } }

@propertyWrapper public struct Binding<Value> {
    public init(get: @escaping @MainActor () -> Value, set: @escaping @MainActor (Value) -> Void) { fatalError() }
    public static func constant(_ value: Value) -> Binding<Value> { fatalError() }
    public var wrappedValue: Value { get { fatalError() } nonmutating set { fatalError() } }
    public var projectedValue: Binding<Value> { self }
}

@propertyWrapper public struct State<Value> {
    public init(wrappedValue: Value) { fatalError() }
    public var wrappedValue: Value { get { fatalError() } nonmutating set { fatalError() } }
    public var projectedValue: Binding<Value> { fatalError() }
}

@MainActor @propertyWrapper public struct ObservedObject<Object: ObservableObject> {
    @dynamicMemberLookup public struct Wrapper {
        public subscript<Value>(dynamicMember keyPath: ReferenceWritableKeyPath<Object, Value>) -> Binding<Value> { fatalError() }
    }
    public init(wrappedValue: Object) { fatalError() }
    public var wrappedValue: Object { fatalError() }
    public var projectedValue: Wrapper { fatalError() }
}

@MainActor @propertyWrapper public struct StateObject<Object: ObservableObject> {
    public nonisolated init(wrappedValue: @autoclosure @escaping () -> Object) { fatalError() }
    public var wrappedValue: Object { fatalError() }
    public var projectedValue: ObservedObject<Object>.Wrapper { fatalError() }
}

@MainActor @propertyWrapper public struct EnvironmentObject<Object: ObservableObject> {
    public nonisolated init() { fatalError() }
    public var wrappedValue: Object { fatalError() }
    public var projectedValue: ObservedObject<Object>.Wrapper { fatalError() }
}

@MainActor @propertyWrapper public struct UIApplicationDelegateAdaptor<Delegate: NSObject & UIApplicationDelegate> {
    public nonisolated init(_ type: Delegate.Type = Delegate.self) { fatalError() }
    public var wrappedValue: Delegate { fatalError() }
}

public enum ScenePhase: Sendable { case background, inactive, active }
public struct EnvironmentValues { public var scenePhase: ScenePhase { fatalError() } }

@propertyWrapper public struct Environment<Value> {
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { fatalError() }
    public var wrappedValue: Value { fatalError() }
}

@MainActor public protocol Scene {}
public struct WindowGroup: Scene { public init<Content: View>(@ViewBuilder content: () -> Content) { fatalError() } }

@resultBuilder public struct SceneBuilder { public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content } }

@MainActor public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}
extension App { public static func main() { fatalError() } }

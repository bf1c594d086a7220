public protocol ObservableObject: AnyObject {}

@propertyWrapper public struct Published<Value> {
    public init(wrappedValue: Value) { fatalError() }
    public var wrappedValue: Value { get { fatalError() } set { fatalError() } }
    public var projectedValue: AsyncStream<Value> { fatalError() }
}

// Linux type-checks the models, and has nothing that draws them.

#if !canImport(Combine)
protocol ObservableObject: AnyObject {}

@propertyWrapper struct Published<Value> {
    var wrappedValue: Value
}
#endif

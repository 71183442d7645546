/// Sees through optionals in an `Any`, if `nil` is not `NSNull`.
protocol OptionalValue {
  var wrapped: Any? { get }
}

extension Optional: OptionalValue {
  var wrapped: Any? { map { $0 as Any } }
}

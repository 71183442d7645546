import DendroTree

extension ValuePlace {
  /// What a query begins or ends at; nil if that is nothing.
  ///
  /// - Throws: `ValidationError` of kind `.invalidQuery` for what no leaf can hold.
  static func bound(_ value: Any?) throws(ValidationError) -> Scalar? {
    guard let value, !isNull(value) else { return nil }
    if let optional = value as? any OptionalValue { return try bound(optional.wrapped) }
    let scalar: Scalar?
    do throws(ValidationError) {
      scalar = try ValuePlace(at: .root).scalar(value)
    } catch {
      throw ValidationError(.invalidQuery, error.message)
    }
    guard let scalar else {
      throw ValidationError(
        .invalidQuery,
        "a value of type \(shown(type(of: value))) is no bound: nil, booleans, numbers and strings are"
      )
    }
    return scalar
  }
}

/// An error for input that violates the rules of the data model.
package struct ValidationError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of errors; the raw values are Firebase's names for them.
  package enum Kind: String, Hashable, Sendable {
    case invalidData = "InvalidFirebaseData"
    case invalidLeafValueType = "InvalidLeafValueType"
    case invalidPath = "InvalidPathValidation"
    case invalidKey = "InvalidKeyValidation"
    case notWritable = "WritablePathValidation"
    case invalidQuery = "InvalidQueryParameter"
    case invalidArgument = "InvalidArgumentError"
  }

  package var kind: Kind
  /// One sentence that names the input, the location and the limit.
  package var message: String

  package init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  package var description: String { "\(kind.rawValue): \(message)" }
}

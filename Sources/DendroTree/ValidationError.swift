/// Input that the rules of the data model refuse.
package struct ValidationError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The names that Firebase gives to these refusals.
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
  /// What, where and the limit, in one sentence.
  package var message: String

  package init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  package var description: String { "\(kind.rawValue): \(message)" }
}

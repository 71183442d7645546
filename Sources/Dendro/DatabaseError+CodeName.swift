extension DatabaseError.Code: CustomStringConvertible {
  /// The name of the code; the number of one that the database does not use.
  public var description: String {
    switch self {
    case .permissionDenied: "permissionDenied"
    case .unavailable: "unavailable"
    case .invalidData: "invalidData"
    case .invalidLeafValueType: "invalidLeafValueType"
    case .invalidPath: "invalidPath"
    case .invalidKey: "invalidKey"
    case .notWritable: "notWritable"
    case .invalidQuery: "invalidQuery"
    case .invalidArgument: "invalidArgument"
    case .alreadyInUse: "alreadyInUse"
    case .invalidURL: "invalidURL"
    case .closed: "closed"
    case .pending: "pending"
    case .locked: "locked"
    case .readOnly: "readOnly"
    case .notFound: "notFound"
    case .corrupt: "corrupt"
    case .unsupportedFormat: "unsupportedFormat"
    case .inputOutput: "inputOutput"
    case .diskFull: "diskFull"
    case .poisoned: "poisoned"
    case .memoryLimit: "memoryLimit"
    case .tooLarge: "tooLarge"
    case .ownershipLost: "ownershipLost"
    case .outOfHistory: "outOfHistory"
    case .noData: "noData"
    case .timedOut: "timedOut"
    case .maxRetry: "maxRetry"
    default: "\(rawValue)"
    }
  }
}

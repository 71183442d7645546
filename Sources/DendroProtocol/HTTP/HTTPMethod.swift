/// What a request asks for.
package enum HTTPMethod: String, Sendable, CaseIterable {
  case get = "GET"
  case put = "PUT"
  case post = "POST"
  case patch = "PATCH"
  case delete = "DELETE"
  case options = "OPTIONS"
  case head = "HEAD"

  /// Whether the request changes data.
  package var isWrite: Bool {
    switch self {
    case .put, .post, .patch, .delete: true
    case .get, .options, .head: false
    }
  }

  /// Whether the request has to have a body.
  package var needsBody: Bool { self == .put || self == .post || self == .patch }
}

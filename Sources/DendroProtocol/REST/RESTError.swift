/// Why a request is refused, as the client gets it.
package struct RESTError: Error, Hashable, Sendable {
  package var status: Int
  package var text: String

  package init(_ status: Int, _ text: String) {
    self.status = status
    self.text = text
  }

  package static func badRequest(_ text: String) -> RESTError { RESTError(400, text) }

  package static let permissionDenied = RESTError(401, "Permission denied")
  package static let badToken = RESTError(401, "Could not parse auth token.")
  package static let expiredToken = RESTError(401, "Auth token is expired")
  package static let earlyToken = RESTError(401, "Auth token is not yet valid")
  package static let revokedToken = RESTError(401, "Auth token is revoked")
  package static let badNamespace = RESTError(403, "Invalid Firebase database name")
  package static let notFound = RESTError(404, "404 Not Found")
  package static let notREST = RESTError(
    404, "append .json to your request URI to use the REST API.")
  package static let writeTooLarge = badRequest(
    "Data to write exceeds the maximum size that can be modified with a single request.")
  package static let readTooLarge = badRequest(
    "Data requested exceeds the maximum size that can be accessed with a single request.")
  package static let tooLarge = RESTError(413, "Payload is too large")
  package static let internalError = RESTError(500, "An internal error occurred")
}

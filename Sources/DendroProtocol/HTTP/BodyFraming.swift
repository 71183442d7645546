/// What the head of a request says about the end of its body.
///
/// Servers on the way read the same head. Where two of them could see different ends, the rest of the body would be a
/// request of its own to one of them, so such heads are refused.
package enum BodyFraming: Hashable, Sendable {
  /// There is no body.
  case none
  /// The body has so many bytes.
  case length(Int)
  /// The body comes in chunks, each with its length. Parsers differ in what they take for the end of a chunk's line, so
  /// nothing that comes behind such a body may be taken for a request.
  case chunked

  /// - Throws: `RESTError` for a head that contradicts itself.
  package init(version: String, headers: HTTPHeaders) throws(RESTError) {
    let codings = headers.values("transfer-encoding")
    let lengths = headers.values("content-length")
    guard codings.count <= 1, lengths.count <= 1, codings.isEmpty || lengths.isEmpty else {
      throw Self.ambiguous
    }
    if let coding = codings.first {
      guard version != "HTTP/1.0" else { throw Self.ambiguous }
      guard coding.lowercased() == "chunked" else {
        throw RESTError(501, "The one Transfer-Encoding that the server reads is chunked.")
      }
      self = .chunked
    } else if let length = lengths.first {
      guard !length.isEmpty,
        length.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
      else { throw Self.ambiguous }
      guard let count = Int(length) else { throw .tooLarge }
      self = count == 0 ? .none : .length(count)
    } else {
      self = .none
    }
  }

  private static let ambiguous = RESTError.badRequest("The length of the body is ambiguous.")
}

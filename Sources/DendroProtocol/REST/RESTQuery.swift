package import DendroTree

/// Reads `orderBy`, the bounds and the limits of a request.
package enum RESTQuery {
  private static let bounds = ["startAt", "startAfter", "endAt", "endBefore", "equalTo"]
  private static let limits = ["limitToFirst", "limitToLast"]

  /// - Parameter isShallow: whether the order of keys is meant if none is named.
  /// - Returns: nil if the request asks for the whole location.
  /// - Throws: `RESTError` with the text that clients know.
  package static func parameters(
    _ target: RequestTarget, isShallow: Bool = false
  ) throws(RESTError) -> QueryParameters? {
    let isBounded = (bounds + limits).contains { target[$0] != nil }
    var parameters = QueryParameters()
    if let text = target["orderBy"] {
      parameters.order = try order(text)
    } else if isBounded {
      guard isShallow else {
        throw .badRequest("orderBy must be defined when other query parameters are defined")
      }
      parameters.order = .key
    } else {
      return nil
    }
    if target["equalTo"] != nil, bounds.dropLast().contains(where: { target[$0] != nil }) {
      throw .badRequest(
        "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore")
    }
    if target["startAt"] != nil, target["startAfter"] != nil {
      throw .badRequest("Only one of startAt and startAfter may be specified")
    }
    if target["endAt"] != nil, target["endBefore"] != nil {
      throw .badRequest("Only one of endAt and endBefore may be specified")
    }
    for name in bounds {
      guard let text = target[name] else { continue }
      let bound = try QueryBound(text)
      if name != "endAt", name != "endBefore" {
        parameters.start = try bound.start(parameters.order, isExclusive: name == "startAfter")
      }
      if name != "startAt", name != "startAfter" {
        parameters.end = try bound.end(parameters.order, isExclusive: name == "endBefore")
      }
    }
    parameters.limit = try limit(target)
    return parameters
  }

  private static func order(_ text: String) throws(RESTError) -> SortOrder {
    guard case .string(let name)? = try? QueryBound.primitive(text) else {
      throw .badRequest("orderBy must be a valid JSON encoded path")
    }
    switch name {
    case "$key": return .key
    case "$value": return .value
    case "$priority": return .priority
    default:
      guard let path = try? Path(parsing: name), !path.isRoot, path.count <= Limits.depth else {
        throw .badRequest("orderBy must be a valid JSON encoded path")
      }
      return .child(path)
    }
  }

  private static func limit(_ target: RequestTarget) throws(RESTError) -> QueryParameters.Limit? {
    if limits.allSatisfy({ target[$0] != nil }) {
      throw .badRequest("Only one of limitToFirst and limitToLast may be specified")
    }
    for name in limits {
      guard let text = target[name] else { continue }
      guard let count = Int(text) else { throw .badRequest("\(name) must be an integer") }
      guard count > 0 else { throw .badRequest("\(name) must be positive") }
      let limited = min(count, QueryRequest.limitMax)
      return name == "limitToFirst" ? .first(limited) : .last(limited)
    }
    return nil
  }
}

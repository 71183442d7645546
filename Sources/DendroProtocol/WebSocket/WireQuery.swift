package import DendroTree

/// Reads the query object of a listen or a get.
package enum WireQuery {
  /// - Throws: `RESTError` with what is wrong.
  package static func parameters(_ object: JSONMembers) throws(RESTError) -> QueryParameters {
    var parameters = QueryParameters()
    switch object.string("i") {
    case nil, ".priority": parameters.order = .priority
    case ".key": parameters.order = .key
    case ".value": parameters.order = .value
    case let text?:
      guard let path = try? Path(parsing: text), !path.isRoot, path.count <= Limits.depth else {
        throw .badRequest("Invalid index: \(RESTRequest.shortened(text))")
      }
      parameters.order = .child(path)
    }
    if let bound = try bound("sp", "sn", object) {
      parameters.start = try bound.start(
        parameters.order, isExclusive: object.bool("sin") == false)
    }
    if let bound = try bound("ep", "en", object) {
      parameters.end = try bound.end(parameters.order, isExclusive: object.bool("ein") == false)
    }
    if object["l"] != nil {
      guard let count = object.integer("l"), count > 0, count <= Int64(QueryRequest.limitMax) else {
        throw .badRequest("Invalid limit")
      }
      let isFirst = object.string("vf").map { $0 == "l" } ?? (object["sp"] != nil)
      parameters.limit = isFirst ? .first(Int(count)) : .last(Int(count))
    }
    return parameters
  }

  /// The members of a query that mean something, as JSON: a client finds the query by them.
  static func text(_ object: JSONMembers) -> String {
    var text: [UInt8] = []
    for name in ["sp", "sn", "sin", "ep", "en", "ein", "l", "vf", "i"] {
      guard let value = object.scalar(name), isMeant(value, by: name) else { continue }
      text.append(UInt8(ascii: text.isEmpty ? "{" : ","))
      JSONText.append(string: name, to: &text)
      text.append(UInt8(ascii: ":"))
      if let value { JSONText.append(value, to: &text) } else { text += Array("null".utf8) }
    }
    return text.isEmpty ? "{}" : String(decoding: text, as: UTF8.self) + "}"
  }

  /// Whether a member has a value of its kind: others mean nothing.
  private static func isMeant(_ value: Scalar?, by name: String) -> Bool {
    switch (name, value) {
    case ("sp", _), ("ep", _): true
    case ("i", .string), ("sn", .string), ("en", .string): true
    case ("sin", .bool), ("ein", .bool), ("l", .integer): true
    case ("vf", .string("l")), ("vf", .string("r")): true
    default: false
    }
  }

  private static func bound(
    _ value: String, _ key: String, _ object: JSONMembers
  ) throws(RESTError) -> QueryBound? {
    guard object[value] != nil else { return nil }
    guard let scalar = object.scalar(value) else {
      throw .badRequest("Constraint index field must be a JSON primitive")
    }
    return QueryBound(value: scalar, key: object.string(key))
  }
}

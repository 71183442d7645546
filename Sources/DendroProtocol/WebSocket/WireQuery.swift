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

  /// The query object with which clients ask for what a query shows.
  package static func text(_ parameters: QueryParameters) -> String {
    var members: [(name: String, value: Scalar?)] = []
    func add(
      _ bound: QueryParameters.Bound, _ names: (value: String, key: String, isIn: String),
      _ open: String
    ) {
      if parameters.order == .key {
        members.append((names.value, bound.key.map { .string($0.string) }))
      } else {
        if case .scalar(let scalar) = bound.value {
          members.append((names.value, scalar))
        } else {
          members.append((names.value, nil))
        }
        // Beyond all children with the value.
        let key = bound.key?.string ?? (bound.isExclusive ? open : nil)
        if let key { members.append((names.key, .string(key))) }
      }
      members.append((names.isIn, .bool(!bound.isExclusive)))
    }
    if let start = parameters.start { add(start, ("sp", "sn", "sin"), QueryBound.highestKey) }
    if let end = parameters.end { add(end, ("ep", "en", "ein"), QueryBound.lowestKey) }
    if let limit = parameters.limit {
      members.append(("l", .integer(Int64(limit.count))))
      var side = "r"
      if case .first = limit { side = "l" }
      members.append(("vf", .string(side)))
    }
    switch parameters.order {
    case .priority: break
    case .key: members.append(("i", .string(".key")))
    case .value: members.append(("i", .string(".value")))
    case .child(let path): members.append(("i", .string(path.relativeText)))
    }
    return text(members)
  }

  private static func text(_ members: [(name: String, value: Scalar?)]) -> String {
    var text = Array("{".utf8)
    for (name, value) in members {
      if text.count > 1 { text.append(UInt8(ascii: ",")) }
      JSONText.append(string: name, to: &text)
      text.append(UInt8(ascii: ":"))
      if let value { JSONText.append(value, to: &text) } else { text += Array("null".utf8) }
    }
    return String(decoding: text, as: UTF8.self) + "}"
  }

  /// The members of a query that mean something, as JSON: a client finds the query by them.
  static func text(_ object: JSONMembers) -> String {
    text(
      ["sp", "sn", "sin", "ep", "en", "ein", "l", "vf", "i"].compactMap { name in
        guard let value = object.scalar(name), isMeant(value, by: name) else { return nil }
        return (name, value)
      })
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

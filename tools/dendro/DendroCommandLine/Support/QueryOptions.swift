import DendroTree

/// The options that pick and order children, as the API's query calls do.
enum QueryOptions {
  static let all: [Command.Option] = [
    Command.Option(
      name: "order-by", value: "ORDER",
      summary: "priority (default), key, value, or child:PATH, as child:stars"),
    Command.Option(
      name: "start-at", value: "VALUE", summary: "children from this on: JSON, or by key a key"),
    Command.Option(name: "start-after", value: "VALUE", summary: "children after this"),
    Command.Option(name: "end-at", value: "VALUE", summary: "children up to this"),
    Command.Option(name: "end-before", value: "VALUE", summary: "children before this"),
    Command.Option(name: "equal-to", value: "VALUE", summary: "children with exactly this"),
    Command.Option(name: "limit-to-first", value: "N", summary: "the first N of them"),
    Command.Option(name: "limit-to-last", value: "N", summary: "the last N of them"),
  ]

  /// What the options ask for; nil if none of them was given.
  static func parameters(_ arguments: Arguments) throws -> QueryParameters? {
    guard all.contains(where: { arguments.has($0) }) else { return nil }
    do {
      return try request(arguments).parameters()
    } catch let error as ValidationError {
      throw Failure.usage(error.message)
    }
  }

  private static func request(_ arguments: Arguments) throws -> QueryRequest {
    var request = QueryRequest()
    switch arguments.value("order-by") {
    case nil: break
    case "priority": try request.sort(by: .priority, call: "--order-by")
    case "key": try request.sort(by: .key, call: "--order-by")
    case "value": try request.sort(by: .value, call: "--order-by")
    case let order? where order.hasPrefix("child:"):
      try request.sort(byChild: String(order.dropFirst(6)), call: "--order-by")
    case let order?:
      throw Failure.usage(
        "--order-by takes priority, key, value or child:PATH, not '\(order)'",
        hint: "by what stands at \(order) below each child: --order-by child:\(order)")
    }
    if let bound = try bound("equal-to", arguments, request) { try request.equal(bound) }
    for option in ["start-at", "start-after"] {
      if let bound = try bound(option, arguments, request) { try request.start(at: bound) }
    }
    for option in ["end-at", "end-before"] {
      if let bound = try bound(option, arguments, request) { try request.end(at: bound) }
    }
    let counts: ClosedRange<UInt> = 1...UInt(QueryRequest.limitMax)
    for option in ["limit-to-first", "limit-to-last"] {
      guard let count = try arguments.integer(option, in: counts) else { continue }
      try request.limit(to: count, last: option == "limit-to-last", call: "--\(option)")
    }
    return request
  }

  private static func bound(
    _ option: String, _ arguments: Arguments, _ request: QueryRequest
  ) throws -> QueryRequest.Bound? {
    guard let word = arguments.value(option) else { return nil }
    let isExclusive = option == "start-after" || option == "end-before"
    let value: Scalar?
    if request.order == .key {
      value = .string(word)
    } else {
      guard let node = try? JSONParser.parse(word), !node.isBranch, node.priority == nil else {
        throw Failure.usage(
          "--\(option) takes null, a boolean, a number or a string in JSON, not '\(word)'",
          hint: "strings have their quotes: --\(option) '\"text\"'; by key (--order-by key) not")
      }
      value = node.scalar
    }
    return QueryRequest.Bound(
      value: value, key: nil, isExclusive: isExclusive, call: "--\(option)")
  }
}

extension JSONValue {
  /// The children in an order; never an array, in which no order shows.
  static func children(of node: Node, in order: SortOrder, _ form: JSONStyle.Form) -> JSONValue {
    var members = node.children(in: order).map { key, child in
      (key.string, JSONValue.node(child, JSONStyle(form)))
    }
    if form == .export, let priority = node.priority {
      members.append((".priority", .node(Node(priority), JSONStyle())))
    }
    return .object(members)
  }
}

package import DendroTree

/// A request as its head says it: everything but the body, checked.
///
/// A value, made without a database: `Credentials` says who asks, `RESTBody` what is to be written, and
/// `RESTAnswer` what goes back.
package struct RESTRequest: Sendable {
  package enum Resource: Hashable, Sendable {
    /// The data at a path.
    case data(Path)
    /// The priority of the node at a path, as a value.
    case priority(Path)
    /// A page below `/.settings/`, without `.json`: `rules`.
    case settings(String)
    /// The list of namespaces.
    case databases
    /// The state of the server.
    case status

    /// Whether it is a part of one database.
    fileprivate var isOfDatabase: Bool {
      switch self {
      case .data, .priority, .settings: true
      case .databases, .status: false
      }
    }

    /// The path of data or of a priority.
    package var path: Path? {
      switch self {
      case .data(let path), .priority(let path): path
      case .settings, .databases, .status: nil
      }
    }
  }

  package enum Print: Sendable {
    case normal
    case pretty
    /// Success is 204 without a body.
    case silent
  }

  package let method: HTTPMethod
  package let resource: Resource
  /// What `ns`, or else the host's first label, says; nil if neither does.
  package let namespace: String?
  package let credentials: Credentials
  package let print: Print
  package let isShallow: Bool
  /// The form of values in the answer.
  package let form: JSONStyle.Form
  /// What `orderBy` and its companions say; nil for the whole location.
  package let query: QueryParameters?
  package let conditions: Conditions
  /// The function of JSONP.
  package let callback: String?
  /// The file name of a download.
  package let download: String?
  /// After which a reading is given up; nil for never.
  package let timeout: Duration?
  /// The write that a reading has to show; nil for any state.
  package let atLeast: UInt64?
  /// How long a write may take; nil for what the database's settings say.
  package let writeSizeLimit: WriteSizeLimit?
  /// Whether the answer is a stream of events.
  package let wantsStream: Bool
  /// The last event that the client has, if it resumes a stream.
  package let lastEventID: UInt64?
  /// Whether events carry the number of their write.
  package let wantsEventIDs: Bool
  /// Whether a settings page is only checked.
  package let isDryRun: Bool
  /// Whether rules are answered as strict JSON.
  package let isStrict: Bool
  /// Whether the answer says how rules have decided, if an administrator asks.
  package let wantsTrace: Bool
  package let origin: Origin
  /// The headers that a preflight asks for.
  package let requestedHeaders: String?

  /// What the request makes its effect depend on.
  package struct Conditions: Hashable, Sendable {
    package var wantsETag = false
    package var ifMatch: String?
    package var ifNoneMatch: String?
  }

  /// Where a browser's page comes from.
  package struct Origin: Hashable, Sendable {
    /// Nil for other clients.
    package var name: String?
    /// Whether the request carries a credential in a header.
    package var hasCredentials = false
  }

  /// Checks a head: the method and the target as they are in the request line, and the header fields.
  ///
  /// - Throws: `RESTError`.
  package init(
    method name: String, target text: String, headers: HTTPHeaders
  ) throws(RESTError) {
    let target = try RequestTarget(text)
    let method = try Self.method(name, target, headers)
    let parameters = RESTParameters(target)
    self.method = method
    resource = try Self.resource(target.path, isWrite: method.isWrite)
    namespace = try Self.namespace(target, headers)
    credentials = Credentials(target, headers)
    print = parameters.print
    form = parameters.form
    isShallow = parameters.flag("shallow")
    isDryRun = parameters.flag("dryRun")
    isStrict = target["format"] == "strict"
    wantsTrace = headers["x-firebase-auth-debug"] != nil
    let reads = method == .get || method == .head
    let isData = resource.path != nil
    wantsStream =
      method == .get && headers["accept"]?.lowercased().contains("text/event-stream") == true
    query =
      reads && isData ? try RESTQuery.parameters(target, isShallow: isShallow) : nil
    conditions = try Self.conditions(method, headers)
    callback = reads ? try parameters.callback() : nil
    download = reads ? try parameters.download() : nil
    timeout = reads ? try parameters.timeout() : nil
    atLeast = reads && isData ? try parameters.atLeast() : nil
    writeSizeLimit = method.isWrite ? try parameters.writeSizeLimit() : nil
    lastEventID = headers["last-event-id"].flatMap { UInt64($0) }
    wantsEventIDs = headers["last-event-id"] != nil || parameters.flag("eventIds")
    origin = Origin(name: headers["origin"], hasCredentials: headers["authorization"] != nil)
    requestedHeaders = headers["access-control-request-headers"]
    if case .priority = resource {
      guard query == nil, !wantsStream, method != .patch, method != .post else {
        throw .badRequest("Invalid path: a priority is read and written as a whole")
      }
    }
    if wantsStream, isShallow {
      throw .badRequest("shallow cannot be used with event streams")
    }
  }

  /// Whether the request reads data once.
  package var isReading: Bool {
    resource.path != nil && (method == .get || method == .head) && !wantsStream
  }

  /// Whether the request is for one database, and not for the server.
  package var isForDatabase: Bool { resource.isOfDatabase }

  /// The style of JSON in the answer.
  package var style: JSONStyle { JSONStyle(form, isPretty: print == .pretty) }
}

// MARK: - Method and place

extension RESTRequest {
  private static func method(
    _ name: String, _ target: RequestTarget, _ headers: HTTPHeaders
  ) throws(RESTError) -> HTTPMethod {
    guard let own = HTTPMethod(rawValue: name) else {
      throw RESTError(405, "The method \(shortened(name)) is not supported.")
    }
    guard own == .post,
      let other = headers["x-http-method-override"] ?? target["x-http-method-override"]
    else { return own }
    guard let override = HTTPMethod(rawValue: other.uppercased()) else {
      throw RESTError(405, "The method \(shortened(other)) is not supported.")
    }
    return override
  }

  /// The longest path that can be written, in bytes of UTF-8 without its slashes at both ends.
  private static let writtenPathBytes = 768

  private static func resource(
    _ path: String, isWrite: Bool
  ) throws(RESTError) -> Resource {
    let suffix = ".json"
    guard path.startsLiterally(with: "/"), path.endsLiterally(with: suffix) else { throw .notREST }
    let place = path.droppingLast(byteCount: suffix.utf8.count)
    let settings = "/.settings/"
    if place.startsLiterally(with: settings) {
      return .settings(String(decoding: place.utf8.dropFirst(settings.utf8.count), as: UTF8.self))
    }
    if place == "/.inspect/databases" { return .databases }
    if place == "/.status" { return .status }
    let pathOfPriority = place.pathOfPriority
    let text = pathOfPriority ?? place
    if isWrite, text.utf8.count > writtenPathBytes + 1 {
      throw .badRequest(
        "Invalid path: Path specified exceeds the maximum length that can be written "
          + "(\(writtenPathBytes) bytes).")
    }
    do {
      let path = try Path(parsing: text)
      guard path.count <= Limits.depth else {
        throw RESTError.badRequest(
          "Invalid path: Path specified exceeds the maximum depth (\(Limits.depth) levels).")
      }
      return pathOfPriority == nil ? .data(path) : .priority(path)
    } catch let error as RESTError {
      throw error
    } catch {
      throw .badRequest("Invalid path: Invalid token in path")
    }
  }

  package static func namespace(
    _ target: RequestTarget, _ headers: HTTPHeaders
  ) throws(RESTError) -> String? {
    if let name = target["ns"], !name.isEmpty {
      guard isNamespace(name) else { throw .badNamespace }
      return name
    }
    return headers["host"].flatMap(namespace(ofHost:))
  }

  /// The first label of a host name that has others, as in production; nil for addresses, and for the name by which
  /// containers reach their host.
  package static func namespace(ofHost host: String) -> String? {
    let name = host.split(separator: ":", maxSplits: 1).first ?? ""
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    guard labels.count > 1, let first = labels.first, let last = labels.last,
      last.utf8.contains(where: { !(0x30...0x39).contains($0) }),
      !RequestPolicy.namesOfContainers.contains(name.lowercased())
    else { return nil }
    return isNamespace(String(first)) && first != "www" ? String(first) : nil
  }

  /// Whether a namespace may have this name: at most 64 letters, digits, `-` and `_`, no sign at first.
  package static func isNamespace(_ name: String) -> Bool {
    guard (1...64).contains(name.utf8.count), let first = name.utf8.first else { return false }
    return first != UInt8(ascii: "-") && first != UInt8(ascii: "_")
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  private static func conditions(
    _ method: HTTPMethod, _ headers: HTTPHeaders
  ) throws(RESTError) -> Conditions {
    let wantsETag = headers["x-firebase-etag"]?.lowercased() == "true"
    let conditions = Conditions(
      wantsETag: wantsETag, ifMatch: headers["if-match"], ifNoneMatch: headers["if-none-match"])
    if wantsETag, method == .patch {
      throw .badRequest("X-Firebase-ETag is not supported for PATCH")
    }
    if conditions.ifMatch != nil, method != .put, method != .delete {
      throw .badRequest("if-match is not supported for \(method.rawValue)")
    }
    if conditions.ifNoneMatch != nil, method.isWrite {
      throw .badRequest("if-none-match is not supported for \(method.rawValue)")
    }
    return conditions
  }

  /// A word of the request in a message.
  static func shortened(_ text: String) -> String {
    let scalars = text.unicodeScalars
    return scalars.count <= 64 ? text : String(scalars.prefix(64)) + "…"
  }
}

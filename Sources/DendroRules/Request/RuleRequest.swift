package import DendroTree

/// A reading or writing that rules judge.
///
/// ```swift
/// let request = try RuleRequest(setting: "posts/a", auth: RuleAuth(userID: "ann"), now: 1_700_000_000_000)
/// let verdict = rules.decide(request, data: before, newData: after)
/// ```
public struct RuleRequest: Sendable {
  /// A location that is read or written.
  package struct Location: Hashable, Sendable {
    package let path: Path
    /// Whether only the priority is written: the value there is still the stored one.
    package let isPriority: Bool

    package init(_ path: Path, isPriority: Bool = false) {
      self.path = path
      self.isPriority = isPriority
    }
  }

  /// Nil for a write.
  package let query: RuleQuery?
  /// What is read, or each location that is written.
  package let locations: [Location]
  /// Who asks; nil if no user is signed in.
  public var auth: RuleAuth?
  /// `now`: milliseconds since 1970. The same number that server timestamps of the write became.
  public var now: Int64
  /// Whether the write had server values, increments included. What rules see of it then depends on the moment and on what
  /// was stored, so observations include it.
  public var hasServerValues = false

  package init(_ locations: [Location], query: RuleQuery?, auth: RuleAuth?, now: Int64) {
    self.locations = locations
    self.query = query
    self.auth = auth
    self.now = now
  }

  /// A reading, once or by listening.
  ///
  /// - Parameters:
  ///   - path: keys, separated by slashes.
  ///   - query: how the location is read.
  ///   - auth: who asks; nil if no user is signed in.
  ///   - now: milliseconds since 1970.
  /// - Throws: ``RuleRequestError`` for an impossible path.
  public init(
    reading path: String, query: RuleQuery = RuleQuery(), auth: RuleAuth? = nil, now: Int64
  ) throws(RuleRequestError) {
    self.init([Location(try Self.path(path))], query: query, auth: auth, now: now)
  }

  /// A set, a removal or a transaction's write: the location gets a new value.
  ///
  /// - Parameters:
  ///   - path: keys, separated by slashes.
  ///   - auth: who asks; nil if no user is signed in.
  ///   - now: milliseconds since 1970.
  /// - Throws: ``RuleRequestError`` for an impossible path.
  public init(
    setting path: String, auth: RuleAuth? = nil, now: Int64
  ) throws(RuleRequestError) {
    self.init([Location(try Self.path(path))], query: nil, auth: auth, now: now)
  }

  /// An update: several locations get new values at once. One refusal refuses all.
  ///
  /// - Parameters:
  ///   - path: the location of the update.
  ///   - children: the paths of its entries below it. One may end in `.priority`.
  ///   - auth: who asks; nil if no user is signed in.
  ///   - now: milliseconds since 1970.
  /// - Throws: ``RuleRequestError`` for an impossible path.
  public init(
    updating path: String, children: [String], auth: RuleAuth? = nil, now: Int64
  ) throws(RuleRequestError) {
    let base = try Self.path(path)
    var locations: [Location] = []
    for child in children {
      let pathOfPriority = child.pathOfPriority
      let path = base.appending(try Self.path(pathOfPriority ?? child))
      locations.append(Location(path, isPriority: pathOfPriority != nil))
    }
    self.init(locations, query: nil, auth: auth, now: now)
  }

  /// A set of a priority: the location keeps its value.
  ///
  /// - Parameters:
  ///   - path: keys, separated by slashes.
  ///   - auth: who asks; nil if no user is signed in.
  ///   - now: milliseconds since 1970.
  /// - Throws: ``RuleRequestError`` for an impossible path.
  public init(
    settingPriority path: String, auth: RuleAuth? = nil, now: Int64
  ) throws(RuleRequestError) {
    let location = Location(try Self.path(path), isPriority: true)
    self.init([location], query: nil, auth: auth, now: now)
  }

  private static func path(_ text: String) throws(RuleRequestError) -> Path {
    do {
      return try Path(parsing: text)
    } catch {
      throw RuleRequestError(message: error.message)
    }
  }
}

/// Why a request names no location.
public struct RuleRequestError: Error, Hashable, Sendable, CustomStringConvertible {
  /// One sentence that names the key and what is wrong with it.
  public let message: String
  /// The message.
  public var description: String { message }
}

package import DendroTree

/// Security rules of a Realtime Database: who may read and write what, and which data is valid.
///
/// Rules are compiled once. They are a value that never changes, may be used on any thread, and decides any
/// number of requests at once. The language is described in <doc:SecurityRules>.
///
/// ```swift
/// let rules = try Rules("""
///   {"rules": {"users": {"$uid": {".read": true, ".write": "auth.uid === $uid"}}}}
///   """)
/// let before = try JSONTree("{}")
/// let after = try before.setting("users/ann/name", to: #""Ann""#)
/// let request = try RuleRequest(
///   setting: "users/ann/name", auth: RuleAuth(userID: "ann"), now: 1_700_000_000_000)
/// rules.decide(request, data: before, newData: after).isAllowed  // true
/// ```
public struct Rules: Sendable {
  /// The text that the rules were made of, comments included.
  public let text: String
  /// What is allowed and yet probably not meant, in the order of the text: at most 100.
  public let warnings: [RuleWarning]

  let program: RuleProgram

  /// Compiles rules.
  ///
  /// - Parameter text: JSON with one property `rules`. Comments, a comma after the last member, and line breaks in
  ///   strings are accepted.
  /// - Throws: ``RuleTextError`` with the first error. Its messages are those of the Realtime Database.
  /// - Complexity: O(n) for the text, and for regular expressions up to the square of their size;
  ///   ``RuleLimits`` bounds both.
  public init(_ text: String) throws(RuleTextError) {
    let bytes = Array(text.utf8)
    do throws(TextFailure) {
      guard bytes.count <= RuleLimits.textBytes else {
        throw TextFailure(
          "The rules have \(bytes.count) bytes; the limit is \(RuleLimits.textBytes).", at: 0)
      }
      var reader = StructureReader(bytes)
      try reader.read(TextParser.parse(bytes, .lenient))
      let program = RuleProgram(reader)
      self.text = text
      self.program = program
      warnings = RuleWarning.all(about: program, hints: reader.hints)
    } catch {
      throw error.error(in: bytes)
    }
  }

  /// The indexes that `.indexOn` declares at a location: paths of children, as `age` or `dim/height`, and
  /// `.value`. Empty if there are none, or if the path is impossible.
  ///
  /// - Complexity: O(keys of the path · log children).
  public func indexes(at path: String) -> [String] {
    guard let path = try? Path(parsing: path) else { return [] }
    return indexes(at: path)
  }

  /// The indexes that `.indexOn` declares at a location.
  package func indexes(at path: Path) -> [String] { program.node(at: path)?.indexes ?? [] }
}

/// What a verdict should come with. Each costs time and memory.
public struct RuleDetails: OptionSet, Sendable {
  /// The bits of the set.
  public let rawValue: Int
  /// Makes a set of bits.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// ``RuleVerdict/trace``.
  public static let trace = RuleDetails(rawValue: 1)
  /// ``RuleVerdict/observations``.
  public static let observations = RuleDetails(rawValue: 2)
}

extension Rules {
  /// Decides a request.
  ///
  /// All rules see the same data, the same new data and the same `now`. A rule that fails while it runs
  /// counts as not true. Nothing is thrown, and no data or rule can make it trap or run for long: what is beyond
  /// ``RuleLimits`` is denied.
  ///
  /// - Parameters:
  ///   - request: what is asked for, by whom and when.
  ///   - data: the whole tree before.
  ///   - newData: the whole tree after the write, with its server values replaced; nil for a reading. A write without
  ///     it is judged as if it left nothing.
  ///   - details: what the verdict comes with.
  /// - Complexity: O(rules on the way), and for a write the nodes below it for which there are
  ///   `.validate` rules.
  public func decide<Data: RuleData>(
    _ request: RuleRequest, data: Data, newData: Data? = nil, details: RuleDetails = []
  ) -> RuleVerdict {
    decide(
      request, ForeignSource(data),
      newData.map { ForeignSource($0) } ?? ForeignSource(nothing: Data.self),
      details)
  }

  /// Decides a request about trees, which are read in place.
  package func decide(
    _ request: RuleRequest, data: Node, newData: Node? = nil, details: RuleDetails = []
  ) -> RuleVerdict {
    NodeSource.with(data, newData ?? .empty) { data, newData in
      decide(request, data, newData, details)
    }
  }

  /// Decides a write that sets one leaf without a priority below the root. The tree after it is not needed.
  package func decide(
    _ request: RuleRequest, data: Node, setting leaf: NodeView, at path: Path,
    details: RuleDetails = []
  ) -> RuleVerdict {
    LeafWriteSource.with(data, setting: leaf, at: path) { data, newData in
      decide(request, data, newData, details)
    }
  }

  /// Decides a request about trees.
  public func decide(
    _ request: RuleRequest, data: JSONTree, newData: JSONTree? = nil, details: RuleDetails = []
  ) -> RuleVerdict {
    decide(request, data: data.node, newData: newData?.node, details: details)
  }

  @inline(__always)
  private func decide<Source: DataSource>(
    _ request: RuleRequest, _ data: Source, _ newData: Source, _ details: RuleDetails
  ) -> RuleVerdict {
    withUnsafePointer(to: request) { request in
      program.blocks.with { (memory: borrowing EvaluationMemory<Source.View>) in
        var evaluation = Evaluation(program, request, data, newData, details, memory)
        let isAllowed = evaluation.decide()
        return evaluation.verdict(isAllowed)
      }
    }
  }
}

import DendroTree

/// A node of the rules: what holds at one location, or at each child that no literal sibling names.
struct RuleNode {
  /// As the text has it; with its `$`, if it has one. Empty for the root.
  let name: String
  let parent: Int?
  /// The place of the name in the text.
  let offset: Int
  /// The number of `$` names above.
  let bindingCount: Int

  /// Literal children by key, in the order of keys.
  var children: [Child] = []
  /// The child for all other keys.
  var wildcard: Int32 = -1
  /// Indices of the rules; -1 for none.
  var read: Int32 = -1
  var write: Int32 = -1
  var validate: Int32 = -1
  /// Whether any node below has a `.validate`.
  var validatesBelow = false
  var indexes: [String] = []

  struct Child {
    let key: Key
    let node: Int32
  }

  var isWildcard: Bool { name.utf8.first == UInt8(ascii: "$") }

  subscript(kind: RuleKind) -> Int32 {
    get {
      switch kind {
      case .read: read
      case .write: write
      case .validate: validate
      }
    }
    set {
      switch kind {
      case .read: read = newValue
      case .write: write = newValue
      case .validate: validate = newValue
      }
    }
  }
}

/// A rule: the expression of one `.read`, `.write` or `.validate`.
struct Rule {
  let kind: RuleKind
  let node: Int
  /// The bytes of the expression; those of the literal, if it is `true` or `false` without quotes.
  let source: [UInt8]
  /// Its place in the text.
  let position: TextPosition
  /// Where each byte of it stands in the text.
  let offset: @Sendable (Int) -> Int
  let code: Range<Int>
  /// The spans that belong to it.
  let spans: Range<Int>
  /// The value, if it is a literal.
  let constant: Bool?
}

import DendroTree

/// A location that a verdict looks at, of the old or of the new tree.
///
/// Places are a list in which each names the one above it, so no path is ever made for them. Those of the way to the
/// rule come in pairs, the old one first; after them come those that the expression itself reaches.
struct Place<View: DataView> {
  /// What is there, as soon as anything asks for it.
  var view: View?
  /// Nil for the root, and for a key that no location can have.
  let key: Key?
  /// The place above; -1 for a root.
  let parent: Int32
  let isNew: Bool
  /// The number of keys above and with it.
  let depth: Int32
}

/// A node of the rules on the way, and what is known about it.
struct Level {
  let node: Int
  /// Its name, as soon as a rule asks for it.
  var name: String?
  /// Whether a `.write` here or above is true; nil until it was asked.
  var isWritable: Bool?
  /// Whether its `.validate` and those above were found true.
  var isValid = false
}

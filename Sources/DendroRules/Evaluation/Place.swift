import DendroTree

/// A location that a verdict looks at, of the old or of the new tree.
///
/// Places are a list in which each names the one above it, so no path is ever made for them. Those of the way to the
/// rule come in pairs, the old one first; after them come those that the expression itself reaches. Of trees they are
/// plain bytes: making one counts no reference.
struct Place<View: DataView> {
  /// What is there, as soon as anything asks for it.
  var view: View?
  let isNew: Bool
  /// The number of keys from the root.
  let depth: Int16
  /// The place above; -1 for a root.
  let parent: Int32
  /// Nil for a root, and for a key that no location can have. The bytes are in the request, in the program, in the
  /// memory of texts, or in a page, and live as long as the place.
  let key: KeyView?
}

/// A node of the rules on the way, and what is known about it.
struct Level {
  let node: Int32
  /// Whether a `.write` here is true; nil until it was asked.
  var isWritable: Bool?
  /// Whether its `.validate` and those above were found true.
  var isValid = false
}

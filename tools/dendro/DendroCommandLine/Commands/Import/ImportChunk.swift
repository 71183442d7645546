import DendroTree

/// Pieces of a text on their way into one update.
///
/// A text may name a place more than once, and the last time counts; an update may not. So entries about
/// one place, or about places below one that is replaced, become one entry before the update is made.
struct ImportChunk {
  /// About what the text of an entry leaves out, so that a chunk of removals is bounded, too.
  private static let entryOverhead = 16

  private var entries: [Write.Entry] = []
  /// Of the text, about.
  private(set) var byteCount = 0

  mutating func append(_ piece: ImportPiece) {
    switch piece.content {
    case .node(let node):
      entries.append(Write.Entry(path: piece.path, action: node.isEmpty ? .remove : .set(node)))
    case .priority(let priority):
      entries.append(Write.Entry(path: piece.path, action: .setPriority(priority)))
    }
    byteCount += piece.byteCount + Self.entryOverhead
  }

  /// The update at `path`, nil without entries; the chunk is empty afterwards.
  ///
  /// - Complexity: O(bytes + entries · log entries).
  mutating func take(at path: Path) -> Write? {
    guard !entries.isEmpty else { return nil }
    defer { self = ImportChunk() }
    let update = Write.update(path, entries)
    // Most texts have no key twice.
    if (try? update.validate()) != nil { return update }
    return .update(path, Self.merged(entries))
  }

  /// Entries with the same effect, none of them at or below a place that another one replaces.
  private static func merged(_ entries: [Write.Entry]) -> [Write.Entry] {
    // All that lies below a path follows it without a gap; entries about one path keep their order.
    let order = entries.indices.sorted { a, b in
      (entries[a].path, a) < (entries[b].path, b)
    }
    var merged: [Write.Entry] = []
    var rest = order[...]
    while let first = rest.first {
      let path = entries[first].path
      let same = rest.prefix { entries[$0].path == path }
      guard let last = same.last(where: { !entries[$0].isPriority }) else {
        // A priority alone replaces nothing below it.
        if let last = same.last { merged.append(entries[last]) }
        rest = rest.dropFirst(same.count)
        continue
      }
      let below = rest.prefix { path.isPrefix(of: entries[$0].path) }
      rest = rest.dropFirst(below.count)
      var node = Node.empty
      for index in [last] + below.filter({ $0 > last }).sorted() {
        let entry = entries[index]
        let relative = Write.Entry(path: entry.path.dropFirst(path.count), action: entry.action)
        _ = node.apply(.update(.root, [relative]))
      }
      merged.append(Write.Entry(path: path, action: node.isEmpty ? .remove : .set(node)))
    }
    return merged
  }
}

extension Write.Entry {
  var isPriority: Bool {
    if case .setPriority = action { return true }
    return false
  }
}

import DendroEngine
import DendroStorage
import DendroTree

/// The chunks of a damaged checkpoint to which nothing leads any more, as a file: nothing says where in the tree they
/// belong, so they are not mixed in. Each line has the children of one location.
struct ApartFile {
  let checkpoint: PartialCheckpoint
  /// As the user wrote it.
  let path: String

  var leafCount: Int { checkpoint.data.orphans.reduce(0) { $0 + $1.node.leafCount() } }

  func write() throws {
    let output = try OutputFile(path)
    for orphan in checkpoint.data.orphans {
      var line = JSONValue.object([
        ("checkpoint", .unsigned(checkpoint.lsn.rawValue)), ("chunk", .count(orphan.chunk)),
        ("firstKey", orphan.firstKey.map { .string("\($0)") } ?? .null),
        ("leaves", .count(orphan.node.leafCount())),
      ]).text
      line.removeLast()
      line += ",\"value\":\(JSONWriter.string(orphan.node, style: JSONStyle(.export)))}\n"
      try line.withUTF8 { try output.write(UnsafeRawBufferPointer($0)) }
    }
    try output.finish()
  }
}

extension PartialTree.Orphan {
  /// Nil for a leaf.
  fileprivate var firstKey: Key? {
    for (key, _) in node.children { return key }
    return nil
  }
}

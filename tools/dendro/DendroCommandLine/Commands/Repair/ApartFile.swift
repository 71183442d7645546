import DendroEngine
import DendroStorage
import DendroTree

/// What can be read of a damaged database, but has no place in the new one, as a file of JSON lines:
/// - the chunks of a damaged checkpoint to which nothing leads any more. Nothing says where in the tree they belong. Each
///   line has the children of one location;
/// - the writes of forks: of files with other writes under the numbers of those that are saved.
struct ApartFile {
  /// A fork, and how many of its writes can be read.
  private struct Fork {
    var segment: LogSalvage.Segment
    var writeCount: Int
  }

  private let salvage: Salvage
  private let checkpoint: PartialCheckpoint?
  private let forks: [Fork]
  /// As the user wrote it.
  let path: String

  /// Nil if there is nothing for it.
  init?(_ salvage: Salvage, path: String) throws {
    self.salvage = salvage
    self.path = path
    checkpoint = salvage.apart
    forks = try salvage.forks.map { segment in
      var count = 0
      try salvage.forEachWrite(of: segment) { _ in count += 1 }
      return Fork(segment: segment, writeCount: count)
    }
    if leafCount == 0, writeCount == 0 { return nil }
  }

  /// In chunks to which nothing leads.
  var leafCount: Int { orphans.reduce(0) { $0 + $1.node.leafCount() } }
  /// Of forks.
  var writeCount: Int { forks.reduce(0) { $0 + $1.writeCount } }
  private var orphans: [PartialTree.Orphan] { checkpoint?.data.orphans ?? [] }

  func write() throws {
    let output = try OutputFile(path)
    for orphan in orphans {
      var line = JSONValue.object([
        ("checkpoint", .unsigned(checkpoint?.lsn.rawValue ?? 0)), ("chunk", .count(orphan.chunk)),
        ("firstKey", orphan.firstKey.map { .string("\($0)") } ?? .null),
        ("leaves", .count(orphan.node.leafCount())),
      ]).text
      line.removeLast()
      line += ",\"value\":\(JSONWriter.string(orphan.node, style: JSONStyle(.export)))}\n"
      try line.withUTF8 { try output.write(UnsafeRawBufferPointer($0)) }
    }
    for fork in forks {
      var failure: (any Error)?
      try salvage.forEachWrite(of: fork.segment) { write in
        guard failure == nil else { return }
        var line = LogLines.forkedLine(write, in: fork.segment.path) + "\n"
        do {
          try line.withUTF8 { try output.write(UnsafeRawBufferPointer($0)) }
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
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

extension LogLines {
  /// A write of a file whose writes are not part of the log, for programs.
  fileprivate static func forkedLine(_ logged: LoggedWrite, in file: String) -> String {
    let members: [(String, JSONValue)] = [
      ("file", .string(file)), ("lsn", .unsigned(logged.lsn.rawValue)),
      ("time", .integer(logged.time)), ("operation", .string(operation(logged.write))),
      ("path", .string("\(logged.write.path)")),
    ]
    return JSONValue.object(members + Self.members(of: logged.write)).text
  }
}

import DendroEngine
@testable import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

/// A table of damages, each with what can be proven of the files, what a repair has saved, and what it has said.
@Suite("dendro: kinds of damage")
struct DamageTableTests {
  private let dendro: Tool
  private var folder: String { dendro.folder.path }
  init() throws { dendro = Tool(folder: try Folder()) }

  private func make(_ form: DamageKind.Form) throws -> LoggedDirectory {
    var good = try LoggedDirectory(
      at: "\(folder)/good", seed: 12, recordCount: 90, keepsHistory: form != .recent)
    switch form {
    case .history, .recent: break
    case .log: good.files = good.files.filter { !$0.key.hasSuffix(".checkpoint") }
    case .backup:
      let name = try #require(good.checkpointNames.last)
      try makeBackup(of: &good, name)
    case .archive:
      #expect(try dendro("backup", "good", "archive", "--incremental").status == 0)
      good.files = try dendro.folder.names(in: "archive").reduce(into: [:]) { files, name in
        files[name] = dendro.folder.bytes("archive/\(name)")
      }
    }
    return good
  }

  /// A checkpoint with many chunks, and the beginning of a log behind it, as a backup has them.
  private func makeBackup(of good: inout LoggedDirectory, _ name: String) throws {
    good.files = good.files.filter { $0.key == name }
    try Damage(of: good).write(to: "\(folder)/backup")
    let directory = try DatabaseDirectory.open(
      "\(folder)/backup", environment: .system, mode: .readWrite(create: true))
    defer { directory.close() }
    let lsn = LogSequenceNumber(try #require(UInt64(name.prefix(20))))
    let header = try CheckpointReader.open(directory, lsn: lsn).header
    try LogWriter.create(
      directory, databaseID: header.databaseID, after: lsn, logChecksum: header.logChecksum,
      time: header.time
    ).close()
    good.files = try dendro.folder.names(in: "backup").reduce(into: [:]) { files, name in
      files[name] = dendro.folder.bytes("backup/\(name)")
    }
  }

  @Test("all that is provable is saved, and what is said is true", arguments: DamageKind.all)
  func repair(kind: DamageKind) throws {
    let good = try make(kind.form)
    var damage = Damage(of: good)
    kind.apply(&damage, good)
    try damage.write(to: "\(folder)/db")
    let verify = try dendro("verify", "db", "--json")
    let repair = try dendro("repair", "db", "new", "--json")
    let report = repair.object
    let isWhole = report["whole"] as? Bool ?? false
    let saved = numbers(report, "saved")
    let lost = numbers(report, "lost")
    let provable = damage.savable(of: good)
    #expect(provable.isSubset(of: saved), "\(provable.subtracting(saved).sorted())")
    #expect(lost.isDisjoint(with: saved))
    let isDamaged = report["damaged"] as? Bool ?? true
    #expect(verify.status == (isDamaged ? 2 : 0), "\(verify.output)")
    var leaves = (provable: 0, saved: 0)
    if isDamaged, report["lastLSN"] is Int {
      #expect(repair.status == (isWhole ? 0 : 1))
      let last = report["lastLSN"] as? Int ?? 0
      let tree = try head(of: "new")
      let truth = good.trees[last]
      if isWhole {
        #expect(CheckpointCoding.contentHash(of: tree) == CheckpointCoding.contentHash(of: truth))
        #expect(lost.isEmpty && report["asFarAsTheFilesSay"] as? Bool == true)
      } else {
        try check(tree, truth, report)
      }
      leaves = (
        try provableLeafCount(damage, good, of: truth),
        tree.leafCount() + (report["apartLeaves"] as? Int ?? 0)
      )
      if kind.form == .backup { #expect(leaves.saved >= leaves.provable) }
    } else if isDamaged {
      // All that is left of a tree whose top is lost is exported apart.
      leaves.saved = report["apartLeaves"] as? Int ?? 0
      leaves.provable = try provableLeafCount(damage, good, of: .empty)
      #expect(repair.status == (leaves.saved > 0 ? 1 : 2))
      #expect(provable.isEmpty && leaves.saved >= leaves.provable)
      #expect(damage.checkpoint(of: good) == nil)
    } else {
      #expect(repair.status == 0)
    }
    try write(kind, provable.count, leaves, report, repair, isDamaged)
  }

  /// Every leaf is as it was, unless it is said to be in doubt; every one that is missing may be so by what is said.
  private func check(_ tree: Node, _ truth: Node, _ report: [String: Any]) throws {
    let doubts = try paths(report, "doubts")
    let holes = try paths(report, "holes")
    let isLogLost =
      !numbers(report, "lost").isEmpty || !(report["lostFrom"] is NSNull)
    let (found, truths) = (leaves(of: tree), leaves(of: truth))
    for (path, leaf) in found where truths[path] != leaf {
      #expect(doubts.contains { $0.isPrefix(of: path) }, "\(path)")
    }
    for path in truths.keys where found[path] == nil {
      #expect(isLogLost || holes.contains { $0.isPrefix(of: path) }, "\(path)")
    }
  }

  private func leaves(of node: Node) -> [Path: String] {
    var leaves: [Path: String] = [:]
    func visit(_ node: Node, _ path: Path) {
      if node.isLeaf { leaves[path] = "\(node.scalar as Any) \(node.priority as Any)" }
      for (key, child) in node.children { visit(child, path.appending(key)) }
    }
    visit(node, .root)
    return leaves
  }

  private func paths(_ report: [String: Any], _ name: String) throws -> [Path] {
    try (report[name] as? [[String: Any]] ?? []).map {
      try Path(parsing: $0["path"] as? String ?? "")
    }
  }

  private func numbers(_ report: [String: Any], _ name: String) -> Set<UInt64> {
    (report[name] as? [[String: Int]] ?? []).reduce(into: []) { set, range in
      set.formUnion(UInt64(range["first"] ?? 0)...UInt64(range["last"] ?? 0))
    }
  }

  private func head(of name: String) throws -> Node {
    let engine = try Engine.open(at: "\(folder)/\(name)", mode: .readOnly)
    defer { try? engine.close() }
    return try engine.wholeHead().root
  }

  /// The leaves of a backup in chunks that survive in one piece; of others, all if the log has them.
  private func provableLeafCount(
    _ damage: Damage, _ good: LoggedDirectory, of truth: Node
  ) throws -> Int {
    guard good.segmentNames.count == 1, let name = good.checkpointNames.first,
      let lsn = UInt64(name.prefix(20)), let file = damage.files[name]
    else { return truth.leafCount() }
    try Damage(of: good).write(to: "\(folder)/whole")
    let directory = try DatabaseDirectory.open(
      "\(folder)/whole", environment: .system, mode: .readOnly)
    defer { directory.close() }
    let reader = try CheckpointReader.open(directory, lsn: LogSequenceNumber(lsn))
    // Every checksum of the file depends on the salt in its header, of which one bit can be put right.
    guard (0..<64).count(where: { !file.isInPlace($0..<$0 + 1) }) <= 1 else { return 0 }
    var count = 0
    for chunk in 0..<reader.chunkCount {
      let start = Int(reader.offset(ofChunk: chunk))
      let end =
        chunk + 1 < reader.chunkCount
        ? Int(reader.offset(ofChunk: chunk + 1)) : Int(reader.footer.indexOffset)
      guard file.survives(start..<end) else { continue }
      count += try reader.readChunk(chunk) { (bytes) throws(StorageError) in
        (try? ChunkPages(
          decoding: bytes, number: UInt32(chunk), source: nil, allowsBytes: false))?.leafCount ?? 0
      }
    }
    return count
  }

  /// Adds the row to the table, if one is asked for.
  private func write(
    _ kind: DamageKind, _ provable: Int, _ leaves: (provable: Int, saved: Int),
    _ report: [String: Any], _ repair: Tool.Outcome, _ isDamaged: Bool
  ) throws {
    guard let path = ProcessInfo.processInfo.environment["DENDRO_DAMAGE_TABLE"] else { return }
    let saved = numbers(report, "saved").count
    let lost = numbers(report, "lost").count
    let lostFrom = (report["lostFrom"] as? Int).map { ", and from \($0) on" } ?? ""
    let holes = (report["holes"] as? [Any])?.count ?? 0
    let said =
      !isDamaged
      ? "nothing is damaged"
      : report["whole"] as? Bool == true
        ? "whole as far as the files say, proven up to \(report["provenUpTo"] as? Int ?? 0)"
        : report["lastLSN"] is Int
          ? "in part: \(lost) writes lost\(lostFrom), \(holes) holes, "
            + "\((report["doubts"] as? [Any])?.count ?? 0) places in doubt"
          : leaves.saved > 0 ? "apart only: no place is known" : "nothing can be saved"
    let line =
      "| \(kind.form.rawValue) | \(kind.name) | \(provable) writes, \(leaves.provable) leaves "
      + "| \(saved) writes, \(leaves.saved) leaves | \(said) | \(repair.status) |\n"
    try Self.table.withLock { _ in
      let old = FileManager.default.contents(atPath: path) ?? Data()
      try (old + Data(line.utf8)).write(to: URL(fileURLWithPath: path))
    }
  }

  /// The cases run at the same time.
  private static let table = Mutex(())
}

import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Testing

@Suite("dendro: randomly damaged directories")
struct DamagedDirectoryTests {
  private static let seeds = 0..<UInt64(Scale.ofProcesses(25))
  private static let damagesPerSeed = Scale.share < 1 ? 7 : 20

  /// What `repair --json` says.
  private struct Report {
    var object: [String: Any]
    func set(_ name: String) -> Set<UInt64> {
      let ranges = object[name] as? [[String: Any]] ?? []
      return ranges.reduce(into: []) { set, range in
        guard let first = range["first"] as? Int, let last = range["last"] as? Int else { return }
        set.formUnion(UInt64(first)...UInt64(last))
      }
    }
    func number(_ name: String) -> UInt64? { (object[name] as? Int).map { UInt64($0) } }
  }

  @Test(
    "verify finds the damage, repair saves what the format allows and says what is lost, and nothing is changed",
    arguments: seeds)
  func damage(seed: UInt64) throws {
    let dendro = Tool(folder: try Folder())
    let folder = dendro.folder.path
    let directory = try LoggedDirectory(
      at: "\(folder)/good", seed: seed, keepsHistory: seed % 3 != 0)
    #expect(try dendro("verify", "good").status == 0)
    let none = Damage(of: directory)
    var random = SeededGenerator(seed: seed &+ 1000)
    for number in 0..<Self.damagesPerSeed {
      let damage = none.adding(1 + random.below(3), random: &random)
      let point = UInt64(random.below(directory.writes.count + 1))
      let hint: Comment = "seed \(seed), damage \(number): \(damage.description)"
      try damage.write(to: "\(folder)/db")
      let before = try contents("\(folder)/db")
      try check(damage, directory, at: point, dendro, hint)
      #expect(try contents("\(folder)/db") == before, hint)
      try? FileManager.default.removeItem(atPath: "\(folder)/new")
      try? FileManager.default.removeItem(atPath: "\(folder)/new-apart.jsonl")
    }
  }

  private func contents(_ path: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: path).reduce(into: [:]) { files, name in
      files[name] = FileManager.default.contents(atPath: "\(path)/\(name)")
    }
  }

  private func check(
    _ damage: Damage, _ directory: LoggedDirectory, at point: UInt64, _ dendro: Tool,
    _ hint: Comment
  ) throws {
    let folder = dendro.folder.path
    let verify = try dendro("verify", "db", "--json")
    try checkQuick(against: verify, dendro, hint)
    let repair = try dendro("repair", "db", "new", "--json")
    #expect(!verify.wasSignalled && !repair.wasSignalled, hint)
    let sure = damage.savable(of: directory)
    let checkpoint = damage.checkpoint(of: directory) ?? 0
    guard !sure.isEmpty || checkpoint > 0 else { return }
    let report = Report(object: repair.object)
    #expect(!repair.object.isEmpty, "\(hint) \(repair.errors)")
    guard report.object["damaged"] as? Bool == true else {
      #expect(repair.status == 0, hint)
      // What is not there now was at the end of the log, and nothing proves that it was durable.
      #expect(sure.count == Int(sure.max() ?? 0) - Int((sure.min() ?? 1) - 1), hint)
      return
    }
    #expect(verify.status == 2, "\(hint) \(verify.output)")
    try checkVerify(verify, damage, hint)
    let saved = report.set("saved")
    #expect(sure.isSubset(of: saved), "\(hint) \(sure.subtracting(saved).sorted())")
    if !saved.isEmpty {
      let engine = try Engine.open(at: "\(folder)/new", mode: .readOnly)
      #expect(engine.head.lsn.rawValue == saved.max(), hint)
      try engine.close()
      #expect(try dendro("verify", "new").status == 0, hint)
    }
    // What is lost is said, by number; only at the end it may not be known.
    let lost = report.set("lost")
    #expect(lost.isDisjoint(with: saved), hint)
    let isWhole = report.object["whole"] as? Bool
    #expect(repair.status == (isWhole == true ? 0 : saved.isEmpty ? repair.status : 1), hint)
    if isWhole == true { #expect(lost.isEmpty && report.object["lostFrom"] is NSNull, hint) }
    try checkProven(report, directory, at: point, dendro, hint)
  }

  /// What was done to the files shows in their checksums, order and names: `verify --quick` says of it what `verify`
  /// says.
  private func checkQuick(against verify: Tool.Outcome, _ dendro: Tool, _ hint: Comment) throws {
    let quick = try dendro("verify", "db", "--quick", "--json")
    #expect(quick.status == verify.status && quick.errors == verify.errors, hint)
    func text(_ outcome: Tool.Outcome) throws -> String? {
      let members = [
        "good", "lastLSN", "segments", "records", "writes", "checkpoints", "bytes", "unfinishedEnd",
        "damage",
      ]
      let object = outcome.object.filter { members.contains($0.key) }
      return String(
        data: try JSONSerialization.data(withJSONObject: object, options: .sortedKeys),
        encoding: .utf8)
    }
    #expect(try text(quick) == text(verify), hint)
  }

  /// Of a single damage `verify` names the file, and for a log the place of the record, first.
  private func checkVerify(_ verify: Tool.Outcome, _ damage: Damage, _ hint: Comment) throws {
    let found = verify.object["damage"] as? [[String: Any]] ?? []
    #expect(!found.isEmpty, hint)
    let changed = damage.files.filter { $0.value.isChanged }
    guard damage.swapped.isEmpty, damage.removed.isEmpty, changed.count == 1,
      let (name, file) = changed.first, let place = file.firstChange
    else { return }
    #expect(
      found.contains { ($0["file"] as? String)?.hasSuffix(name) ?? false }
        || found.contains { ($0["message"] as? String)?.contains(name) ?? false },
      "\(hint) \(verify.output)")
    let offset = found.first?["offset"] as? Int
    guard (found.first?["file"] as? String)?.hasSuffix(name) == true, let offset else { return }
    // A damaged header is reported if its checksum stands.
    #expect(
      offset <= max(64, place + 300) || name.hasSuffix(".checkpoint"), hint)
  }

  /// `get --salvage` and `--at` give what was there, or refuse.
  private func checkProven(
    _ report: Report, _ directory: LoggedDirectory, at point: UInt64, _ dendro: Tool,
    _ hint: Comment
  ) throws {
    let ranges = report.object["proven"] as? [[String: Any]] ?? []
    let proven = ranges.flatMap { range in
      Array((range["first"] as? Int ?? 0)...(range["last"] as? Int ?? 0))
    }
    for lsn in report.set("saved") where report.object["whole"] as? Bool == true {
      #expect(Int(lsn) <= proven.max() ?? 0, hint)
    }
    let salvage = try dendro("export", "db", "--salvage")
    if let last = proven.max(), report.object["refusal"] is String {
      #expect(salvage.output == text(directory.trees[last]), hint)
    }
    let past = try dendro("export", "db", "--at", "\(point)")
    if past.status == 0 {
      #expect(past.output == text(directory.trees[Int(point)]), hint)
    } else if proven.contains(Int(point)), !directory.trees[Int(point)].isEmpty {
      // Without a refusal, opening takes the same files as `repair`.
      #expect(report.object["refusal"] is NSNull, "\(hint) \(past.errors)")
    }
  }

  private func text(_ node: Node) -> String {
    JSONWriter.string(node, style: JSONStyle(.export)) + "\n"
  }
}

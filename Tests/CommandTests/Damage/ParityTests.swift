import DendroTestSupport
import Foundation
import Testing

@Suite("dendro: backups and archives with parity, damaged")
struct ParityTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }

  private static let size = 4096
  private static let verbs = ["backup", "archive"]

  /// A database with values that cannot be compressed, a checkpoint and more behind it.
  init() throws {
    dendro = Tool(folder: try Folder())
    var random = SeededGenerator(seed: 1)
    let lines = (1...60).map { number -> String in
      let text = String(
        (0..<3000).map { _ in Character(UnicodeScalar(48 + UInt8(random.below(64)))) }
      )
      .replacing("\\", with: "y")
      return "set /texts/t\(number) '\"\(text)\"'"
    }
    try dendro(
      "shell", "db", input: lines.prefix(45).joined(separator: "\n") + "\ncheckpoint\n")
    let outcome = try dendro(
      "shell", "db", input: lines.dropFirst(45).joined(separator: "\n") + "\n")
    #expect(outcome.status == 0, "\(outcome.errors)")
    try dendro("backup", "db", "backup", "--parity")
    try dendro("backup", "db", "archive", "--incremental")
  }

  private func files(_ directory: String) throws -> [String] {
    try folder.names(in: directory).filter { $0.hasSuffix(".log") || $0.hasSuffix(".checkpoint") }
  }

  private func width(_ byteCount: Int) -> Int {
    let blockCount = (byteCount + Self.size - 1) / Self.size
    return ((blockCount + 15) / 16 - 1) * Self.size + 1
  }

  /// Changes every byte of a range of a file.
  private func damage(_ file: String, _ range: Range<Int>) throws {
    var bytes = folder.bytes(file)
    for index in range.clamped(to: 0..<bytes.count) { bytes[index] = ~bytes[index] }
    try folder.write(bytes, to: file)
  }

  private func parity(_ object: [String: Any]) -> [[String: Any]] {
    object["parity"] as? [[String: Any]] ?? []
  }

  @Test("each file has parity, which the reading verbs say, and good files nothing more")
  func present() throws {
    for directory in Self.verbs {
      let names = try folder.names(in: directory)
      for name in try files(directory) { #expect(names.contains(name + ".parity")) }
      let verify = try dendro("verify", directory, "--json")
      #expect(verify.status == 0)
      #expect(try verify.object["parityFiles"] as? Int == files(directory).count)
      #expect(parity(verify.object).isEmpty)
      #expect(try dendro("verify", directory).output.contains("parity        of "))
      let info = try dendro("info", directory, "--json").object
      #expect(try info["parityFiles"] as? Int == files(directory).count)
      let share = Double(info["parityBytes"] as? Int ?? 0) / Double(info["bytes"] as? Int ?? 1)
      #expect(share > 0.0645 && share < 0.12, "\(share)")
      #expect((info["foreignFiles"] as? [String])?.isEmpty == true)
      #expect(try dendro("repair", directory, "--dry-run").output.contains("nothing is damaged"))
    }
    #expect(try !folder.names(in: "db").contains { $0.hasSuffix(".parity") })
  }

  @Test("the options say whether there is parity")
  func options() throws {
    try dendro("backup", "db", "plain")
    try dendro("backup", "db", "bare", "-i", "--no-parity")
    for directory in ["plain", "bare"] {
      #expect(try !folder.names(in: directory).contains { $0.hasSuffix(".parity") })
    }
    // An archive gets what it lacks.
    let more = try dendro("backup", "db", "bare", "-i")
    #expect(more.output.hasPrefix("nothing new, ") && more.output.contains(" of parity"))
    #expect(
      try folder.names(in: "bare").count { $0.hasSuffix(".parity") } == files("bare").count)
    #expect(try dendro("backup", "db", "x", "--parity", "--no-parity").status == 64)
    #expect(try dendro("archive", "db", "--to", "x", "--parity", "--no-parity").status == 64)
    #expect(try !folder.names(in: ".").contains("x"))
  }

  @Test(
    "a damaged stretch of the width, anywhere in any file, costs no write", arguments: verbs)
  func anyStretch(directory: String) throws {
    let hash = try dendro("hash", "db").output
    for name in try files(directory) {
      let file = "\(directory)/\(name)"
      let original = folder.bytes(file)
      let width = width(original.count)
      for start in stride(from: 0, to: original.count, by: Self.size * Scale.stride(7)) {
        let hint: Comment = "\(file) from \(start) on"
        try damage(file, start..<start + width)
        let damaged = folder.bytes(file)
        let outcome = try dendro("repair", directory, "new", "--json")
        let report = outcome.object
        #expect(outcome.status == 0, "\(hint): \(outcome.errors)")
        #expect(report["whole"] as? Bool == true && report["damaged"] as? Bool == true, hint)
        #expect((report["lost"] as? [Any])?.isEmpty == true, hint)
        let mended = parity(report)
        #expect(mended.count == 1 && mended.first?["state"] as? String == "mends", hint)
        #expect((mended.first?["file"] as? String)?.hasSuffix(file) == true, hint)
        #expect(
          (mended.first?["parityFile"] as? String)?.hasSuffix("\(file).parity") == true, hint)
        #expect(try dendro("hash", "new").output == hash, hint)
        #expect(folder.bytes(file) == damaged, "nothing is changed")
        try FileManager.default.removeItem(atPath: "\(folder.path)/new")
        try folder.write(original, to: file)
      }
    }
  }

  @Test("verify says what is damaged, and that its parity mends it", arguments: verbs)
  func verify(directory: String) throws {
    for name in try files(directory) {
      let file = "\(directory)/\(name)"
      let original = folder.bytes(file)
      try damage(file, 70..<71)
      for words in [["verify", directory], ["verify", directory, "--quick"]] {
        let outcome = try dendro.run(words)
        #expect(outcome.status == 2)
        #expect(outcome.output.contains("\(file), offset 0: 1 block not as before"))
        #expect(outcome.output.contains("\(file).parity mends all of it"))
      }
      let object = try dendro("verify", directory, "--json").object
      #expect(parity(object).first?["mendedBlocks"] as? Int == 1)
      let repair = try dendro("repair", directory, "--dry-run")
      #expect(repair.status == 0)
      #expect(repair.output.contains("mended        1 block of "), "\(repair.output)")
      try folder.write(original, to: file)
    }
  }

  @Test("a damaged parity file is known, and no wrong byte is taken for a mended one")
  func damagedParity() throws {
    let name = try #require(try files("archive").first { $0.hasSuffix(".log") })
    let file = "archive/\(name)"
    let (original, originalParity) = (folder.bytes(file), folder.bytes("\(file).parity"))
    let hash = try dendro("hash", "db").output
    // The header, the table, the first parity block.
    for place in [5, 20, 119, 125, originalParity.count - 1, 2000] {
      try damage("\(file).parity", place..<place + 1)
      let verify = try dendro("verify", "archive")
      #expect(verify.status == 2, "byte \(place)")
      #expect(verify.output.contains("damage: ") && verify.output.contains(".parity"))
      let quick = try dendro("verify", "archive", "--quick")
      #expect(quick.status == 2)
      let advice = "the next extension of the archive writes them anew\n"
      #expect(verify.errors.contains(advice) || verify.output.contains(advice), "byte \(place)")
      let repair = try dendro("repair", "archive", "new")
      #expect(repair.status == 0 && repair.output.contains("no data is damaged"))
      #expect(repair.output.contains(".parity"))
      #expect(try dendro("hash", "archive").output == hash)
      // Both.
      try damage(file, 5000..<5010)
      let both = try dendro("repair", "archive", "new", "--json")
      let state = try #require(parity(both.object).first)
      #expect((state["problems"] as? [String])?.isEmpty == false, "byte \(place)")
      if state["mendedBlocks"] as? Int == 1 {
        #expect(both.status == 0)
      } else {
        // The checkpoint behind the lost record has its effect.
        #expect((both.object["damage"] as? [Any])?.isEmpty == false)
      }
      #expect(try dendro("hash", "new").output == hash)
      try FileManager.default.removeItem(atPath: "\(folder.path)/new")
      #expect(!(try dendro("verify", "archive").output.contains(advice)))
      try folder.write(original, to: file)
      // As the advice says.
      try FileManager.default.removeItem(atPath: "\(folder.path)/\(file).parity")
      try dendro("backup", "db", "archive", "--incremental")
      #expect(try dendro("verify", "archive").status == 0, "byte \(place)")
      try folder.write(originalParity, to: "\(file).parity")
    }
  }

  @Test("parity of another file is not used, and older parity is no damage")
  func otherAndOlder() throws {
    let names = try files("archive").filter { $0.hasSuffix(".log") }
    try #require(names.count > 1)
    let parity = folder.bytes("archive/\(names[1]).parity")
    try folder.write(parity, to: "archive/\(names[0]).parity")
    let other = try dendro("verify", "archive")
    #expect(other.status == 2)
    #expect(other.output.contains("is of other bytes than those of"), "\(other.output)")
    #expect(try dendro("repair", "archive", "new").output.contains("no data is damaged"))
    // The next extension writes it anew.
    try dendro("backup", "db", "archive", "-i")
    #expect(try dendro("verify", "archive").status == 0)
    // A backup that is written to.
    try dendro("set", "backup", "/more", "1")
    let older = try dendro("verify", "backup")
    #expect(older.status == 0 && older.output.contains("more came later"), "\(older.output)")
    #expect(self.parity(try dendro("verify", "backup", "--json").object).count == 1)
    let purge = try dendro("purge", "backup", "--force")
    #expect(purge.status == 0, "\(purge.errors)")
    let left = try folder.names(in: "backup").filter { $0.hasSuffix(".parity") }
    #expect(
      try left == files("backup").filter { $0.hasSuffix(".checkpoint") }.map { $0 + ".parity" })
    #expect(try dendro("verify", "backup").status == 0)
  }

  @Test("beyond the width only what was hit is lost")
  func wider() throws {
    let name = try #require(try files("archive").last { $0.hasSuffix(".log") })
    let file = "archive/\(name)"
    let original = folder.bytes(file)
    let width = width(original.count)
    // The end of one block, and the beginning of the next one with the same parity block.
    let start = 3 * Self.size - 1
    try damage(file, start..<start + width + 1)
    let verify = try dendro("verify", "archive")
    #expect(verify.status == 2)
    let outcome = try dendro("repair", "archive", "new", "--json")
    #expect(outcome.status == 1, "\(outcome.errors)")
    #expect(parity(outcome.object).first?["state"] as? String == "exceeded")
    let lost = outcome.object["lost"] as? [[String: Int]] ?? []
    let count = lost.reduce(0) { $0 + ($1["last"] ?? 0) - ($1["first"] ?? 0) + 1 }
    #expect((1...4).contains(count), "\(lost)")
    #expect(outcome.object["lastLSN"] as? Int == 60)
  }
}

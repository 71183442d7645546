import DendroTree
import Foundation
import DendroTestSupport
import Testing

/// What everything is held against has to be obviously right, and hence small.
@Suite struct OracleTests {
  @Test("the oracle of tree, events and durability has at most 200 lines of code")
  func isSmall() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("DendroTestSupport/Oracle")
    var lineCount = 0
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
      lineCount += text.split(separator: "\n").count { line in
        let words = line.drop { $0 == " " }
        return !words.isEmpty && !words.hasPrefix("//")
      }
    }
    print("the oracle: \(lineCount) lines of code")
    #expect((100...200).contains(lineCount))
  }

  @Test("a crash may leave what was acknowledged before it, up to what was begun")
  func legalWrites() throws {
    let place = try Path(parsing: "n")
    var oracle = ModelDurability()
    #expect(oracle.legalWrites(at: 0) == 0...0)
    for _ in 0..<2 { oracle.write(.increment(place, .integer(1))) }
    oracle.begin(at: 10)
    // Begun after call 10: its first call is the eleventh.
    #expect(oracle.legalWrites(at: 10) == 0...0)
    #expect(oracle.legalWrites(at: 11) == 0...2)
    oracle.acknowledge(1, at: 13)
    #expect(oracle.legalWrites(at: 12) == 0...2)
    #expect(oracle.legalWrites(at: 13) == 1...2)
    #expect(oracle.trees.map { "\($0)" } == ["", "{n:integer(1)}", "{n:integer(2)}"])
    oracle.reopen(with: 1, at: 20)
    #expect(oracle.legalWrites(at: 21) == 1...1)
    #expect(oracle.last == 1)
    #expect(oracle.continued().legalWrites(at: 0) == 1...1)
  }
}

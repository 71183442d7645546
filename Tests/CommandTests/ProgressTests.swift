import Foundation
import Testing

@Suite("dendro: progress on a terminal")
struct ProgressTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  /// The lines that were drawn one over the other, and what stays behind the last wipe.
  private func lines(_ outcome: Tool.Outcome) -> [String] {
    outcome.errors.components(separatedBy: "\r\u{1B}[K")
  }

  @Test(
    "a line leaves the last column free and is wiped", arguments: [20, 60, 80, 160] as [UInt16])
  func width(columns: UInt16) throws {
    let directory = "db-" + String(repeating: "long-", count: 30)
    for index in 0..<3 { try dendro("set", directory, "/k\(index)", "\(index)") }
    try dendro("checkpoint", directory)
    try dendro("set", directory, "/last", "1")
    let outcome = try PseudoTerminal(columns: columns).run(dendro, ["verify", directory])
    #expect(outcome.status == 0)
    let lines = lines(outcome)
    #expect(lines.count > 1, "\(outcome.errors)")
    #expect(lines.allSatisfy { $0.count < columns }, "\(lines)")
    #expect(lines.last == "", "\(lines)")
  }

  @Test("verify says that it reads a checkpoint", arguments: [[], ["--quick"]])
  func checkpoint(options: [String]) throws {
    let members = (0..<60_000).map { "\"key-\($0)\":\($0)" }
    try folder.write("{\(members.joined(separator: ","))}", to: "in.json")
    #expect(try dendro("import", "db", "/", "in.json", "--atomic").status == 0)
    #expect(try dendro("checkpoint", "db").status == 0)
    let outcome = try PseudoTerminal(columns: 80).run(dendro, ["verify", "db"] + options)
    #expect(outcome.status == 0)
    let lines = lines(outcome)
    #expect(lines.contains { $0.contains("checkpoint at LSN 1") }, "\(lines)")
    #expect(lines.last == "")
  }

  @Test("nothing is drawn if standard error is no terminal")
  func file() throws {
    try dendro("set", "db", "/a", "1")
    #expect(try dendro("verify", "db").errors.isEmpty)
  }
}

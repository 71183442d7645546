import Foundation
import Testing

@Suite("dendro: the demonstration")
struct DemoTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  @Test("it proves what it says")
  func proof() throws {
    let entries = (0..<500).map { #"{"code":"\#($0)","name":"Näme \#($0)"}"# }
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/data", withIntermediateDirectories: false)
    try folder.write("{\"list-1\":[\(entries.joined(separator: ","))]}", to: "data/iso_1.json")
    try folder.write(#"{"list-2":[{"code":"x"}]}"#, to: "data/iso_2.json")
    let outcome = try dendro("demo", "db", "--seconds", "1", "--data", "data", "--writers", "8")
    #expect(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
    #expect(outcome.output.contains("killed with SIGKILL"))
    #expect(outcome.lines.last?.hasPrefix("Proved: ") == true)
    #expect(try dendro("verify", "db").status == 0)
    #expect(try dendro("get", "db", "/iso-codes/iso_2/list-2/0/code").output == "\"x\"\n")
    #expect(try dendro("demo", "db", "--data", "data").status == 1)
    #expect(try dendro("demo", "--data", "nowhere").status == 69)
  }
}

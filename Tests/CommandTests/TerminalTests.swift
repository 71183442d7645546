import Foundation
import Testing

/// What the tool shows on a terminal.
@Suite("dendro: on a terminal")
struct TerminalTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  init() throws { dendro = Tool(folder: try Folder()) }

  @Test("Ctrl-C at the shell's prompt drops the line, and the shell goes on")
  func interruptedLine() throws {
    try dendro("set", "db", "/a", "1")
    let outcome = try PseudoTerminal(columns: 80).converse(
      dendro, ["shell", "db"],
      [
        ("/> ", "remove a --for"), ("remove a --for", "\u{3}"), ("/> ", "\u{3}"),
        ("/> ", "get a\r"),
        ("1\u{1B}[0m\r\n/> ", "quit\r"),
      ])
    #expect(outcome.status == 0 && !outcome.wasSignalled, "\(outcome.errors)")
    #expect(try dendro("get", "db", "/a").output == "1\n")
  }
}

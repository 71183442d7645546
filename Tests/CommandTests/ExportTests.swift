import DendroPlatform
import Foundation
import Testing

@Suite("dendro: where an export is written")
struct ExportTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }
  private static let text = #"{"a":1}"# + "\n"

  init() throws {
    dendro = Tool(folder: try Folder())
    try dendro("set", "db", "/a", "1")
  }

  private func information(_ name: String) -> stat {
    var information = stat()
    lstat("\(folder.path)/\(name)", &information)
    return information
  }

  private func kind(_ name: String) -> mode_t { information(name).st_mode & S_IFMT }

  /// All files but those of the tool's output.
  private func visibleNames() throws -> [String] {
    try folder.names(in: ".").filter { !$0.hasPrefix(".file-") }
  }

  @Test("a named pipe delivers to its reader and stays")
  func pipe() throws {
    try #require(mkfifo("\(folder.path)/p", 0o600) == 0)
    let reader = try dendro.start(["p"], executable: "/bin/cat")
    // On a failure nothing would ever come.
    defer { reader.send(SIGKILL) }
    let outcome = try dendro("export", "db", "-o", "p")
    #expect(outcome.status == 0)
    #expect(outcome.output.hasPrefix("exported 1 leaf"))
    try #require(kind("p") == S_IFIFO)
    #expect(try reader.wait().output == Self.text)
  }

  @Test("a link is followed, also over several links and to a file that is not there yet")
  func links() throws {
    let files = FileManager.default
    try files.createDirectory(
      atPath: "\(folder.path)/there", withIntermediateDirectories: false)
    for (link, target) in [
      ("one", "there/file"), ("two", "one"), ("new", "\(folder.path)/there/new"),
      ("there/back", "../one"),
    ] {
      try files.createSymbolicLink(
        atPath: "\(folder.path)/\(link)", withDestinationPath: target)
    }
    try folder.write("old", to: "there/file")
    for link in ["one", "two", "there/back", "new"] {
      try folder.write("old", to: "there/file")
      #expect(try dendro("export", "db", "-o", link).status == 0)
      #expect(kind(link) == S_IFLNK, "\(link)")
      #expect(folder.read(link) == Self.text)
      #expect(folder.read("there/file") == (link == "new" ? "old" : Self.text))
    }
    #expect(try folder.names(in: "there") == ["back", "file", "new"])
    try files.createSymbolicLink(
      atPath: "\(folder.path)/circle", withDestinationPath: "circle")
    #expect(try dendro("export", "db", "-o", "circle").status == 74)
    #expect(kind("circle") == S_IFLNK)
  }

  @Test("a link to standard output is standard output")
  func standardOutput() throws {
    try FileManager.default.createSymbolicLink(
      atPath: "\(folder.path)/out", withDestinationPath: "/proc/self/fd/1")
    let plain = try dendro("export", "db", "-o", "out")
    #expect(plain.status == 0)
    #expect(plain.output == Self.text)
    #expect(kind("out") == S_IFLNK)
    try folder.write("before\n", to: "log")
    let appended = try dendro.run(
      ["-c", "exec \"$0\" export db -o out >> log", Tool.path], executable: "/bin/sh")
    #expect(appended.status == 0)
    #expect(folder.read("log") == "before\n" + Self.text)
  }

  @Test("a device is written to and stays a device")
  func device() throws {
    // If no node can be made, a link to one: never the system's own.
    let isNode = mknod("\(folder.path)/null", S_IFCHR | 0o600, makedev(1, 3)) == 0
    if !isNode {
      try FileManager.default.createSymbolicLink(
        atPath: "\(folder.path)/null", withDestinationPath: "/dev/null")
    }
    #expect(try dendro("export", "db", "-o", "null").status == 0)
    #expect(kind("null") == (isNode ? S_IFCHR : S_IFLNK))
    let rest = try visibleNames()
    #expect(rest == ["db", "null"])
  }

  @Test("a directory is an error, and nothing is left beside it")
  func directory() throws {
    let outcome = try dendro("export", "db", "-o", "db")
    #expect(outcome.status == 74)
    #expect(outcome.errors.contains("db: Is a directory"), "\(outcome.errors)")
    #expect(try visibleNames() == ["db"])
  }

  @Test(
    "a file that is there is replaced as a whole and keeps its mode", arguments: [0o600, 0o664])
  func mode(mode: Int) throws {
    try folder.write("old", to: "out")
    try #require(chmod("\(folder.path)/out", mode_t(mode)) == 0)
    let before = information("out").st_ino
    #expect(try dendro("export", "db", "-o", "out").status == 0)
    #expect(folder.read("out") == Self.text)
    #expect(Int(information("out").st_mode & 0o7777) == mode)
    #expect(information("out").st_ino != before, "a crash must leave the old or the new file")
    #expect(try visibleNames() == ["db", "out"])
  }

  @Test("an export that fails leaves the old file and nothing beside it")
  func failure() throws {
    let text = String(repeating: "text", count: 1 << 20)
    try folder.write(#"{"long":"\#(text)"}"#, to: "long.json")
    #expect(try dendro("import", "db", "/b", "long.json").status == 0)
    try folder.write("old", to: "out")
    // Blocks of 512 bytes: half of what is exported.
    let outcome = try dendro.run(
      ["-c", "ulimit -f 4096; trap '' XFSZ; exec \"$0\" export db -o out", Tool.path],
      executable: "/bin/sh")
    #expect(outcome.status == 74, "\(outcome.errors)")
    #expect(folder.read("out") == "old")
    #expect(try visibleNames() == ["db", "long.json", "out"])
  }
}

/// The number of a device, as `<sys/sysmacros.h>` makes it for small numbers.
private func makedev(_ major: dev_t, _ minor: dev_t) -> dev_t { major << 8 | minor }

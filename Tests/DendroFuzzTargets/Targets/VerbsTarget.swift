import DendroCommandLine
import DendroTree
import Foundation

extension FuzzTarget {
  /// A directory, as for `directory`, on a real disk.
  static let verbs = FuzzTarget(
    "verbs", "the inspecting verbs of dendro on whole directories", weight: 2,
    seeds: { try FuzzTarget.directory.seeds() },
    body: { bytes in
      let files = FileArchive(bytes).contents
      let place = try VerbsPlace()
      defer { place.remove() }
      try place.fill(files)
      let before = try place.contents()
      for words in VerbsPlace.calls {
        let output = CapturedOutput()
        let status = output.run(words.map { $0 == "DIR" ? place.path : $0 })
        let call = "dendro " + words.joined(separator: " ")
        try require(VerbsPlace.exitCodes.contains(status), "\(call) ends with \(status)")
        if words.contains("--json") { try VerbsPlace.checkLines(output.output, call) }
        try require(try place.contents() == before, "\(call) changed the directory")
      }
    })
}

private struct VerbsPlace {
  static let calls = [
    ["info", "DIR"], ["info", "DIR", "--json"], ["verify", "DIR", "--json"],
    ["log", "DIR", "--records"], ["log", "DIR", "--json"], ["get", "DIR", "/", "--export"],
    ["info", "DIR", "--full", "--json"], ["log", "DIR", "--reverse", "--last", "9", "--json"],
    ["log", "DIR", "--stats", "--json"], ["repair", "DIR", "--dry-run", "--json"],
    ["repair", "DIR", "--dry-run"], ["get", "DIR", "--salvage", "--json"],
    ["blame", "DIR", "--json"], ["dump", "DIR", "1", "--json"],
    ["dump", "DIR", "checkpoint:0", "--json"],
  ]
  /// As the manual of `dendro` lists them.
  static let exitCodes: Set<Int32> = [0, 1, 2, 64, 65, 69, 74, 75]

  let path: String

  init() throws {
    path =
      FileManager.default.temporaryDirectory.path
      + "/dendro-fuzz-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }

  func fill(_ files: [(name: String, bytes: [UInt8])]) throws {
    for file in files {
      let descriptor = open("\(path)/\(file.name)", O_WRONLY | O_CREAT | O_EXCL, 0o600)
      // Of equal names the first counts.
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      try require(
        write(descriptor, file.bytes, file.bytes.count) == file.bytes.count,
        "the input cannot be written to \(path)")
    }
  }

  /// Names, sizes and bytes.
  func contents() throws -> [String: [UInt8]] {
    var contents: [String: [UInt8]] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      // Not by Foundation, which forgets a page for each empty file.
      let descriptor = open("\(path)/\(name)", O_RDONLY)
      defer { close(descriptor) }
      var bytes = [UInt8](repeating: 0, count: 1 << 20)
      let count = read(descriptor, &bytes, bytes.count)
      contents[name] = Array(bytes.prefix(max(0, count)))
    }
    return contents
  }

  /// A line of JSON is JSON, though a directory's path may be no key for the tree.
  static func checkLines(_ output: [UInt8], _ call: String) throws {
    for line in output.split(separator: UInt8(ascii: "\n")) {
      let parsed = Array(line).withUnsafeBytes { line in
        FuzzTarget.result { () throws(JSONError) in try JSONParser.parse(line) }
      }
      if case .failure(let error) = parsed {
        try require(error.kind != .syntax, "\(call) says what is no JSON: \(error)")
      }
    }
  }
}

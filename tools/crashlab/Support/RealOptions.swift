import Foundation

/// What the commands on the real system take besides.
struct RealOptions: Sendable {
  /// Which of them a command takes.
  static func named(of command: String) -> Set<String> {
    switch command {
    case "kill": ["--cycles", "--writers", "--directory"]
    case "power": ["--writers", "--file-system"]
    default: []
    }
  }

  static func flags(of command: String) -> Set<String> {
    ["kill", "power"].contains(command) ? ["--verbose"] : []
  }

  var cycles: Int?
  var writerCount: Int
  var directory: String?
  var fileSystem: String?
  var isVerbose: Bool

  init(_ words: inout Options, _ options: LabOptions) {
    cycles = options.count
    // An older name of --count.
    if words["--cycles"] != nil { cycles = words.number("--cycles", in: 1...1_000_000, default: 1) }
    writerCount = words.number("--writers", in: 1...1024, default: 16)
    directory = words["--directory"]
    if directory == "" { words.fail("--directory wants a path") }
    fileSystem = words["--file-system"]
    if let fileSystem, PowerImage.Kind(rawValue: fileSystem) == nil {
      words.fail("--file-system wants ext4, xfs or btrfs")
    }
    isVerbose = words.has("--verbose")
  }
}

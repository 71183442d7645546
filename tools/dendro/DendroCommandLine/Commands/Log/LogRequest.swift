import DendroEngine
import DendroStorage

/// What the words of `dendro log` ask for.
struct LogRequest {
  let arguments: Arguments
  private(set) var filter = LogFilter()
  let last: Int?
  let isReversed: Bool
  let isFollowing: Bool
  let showsRecords: Bool
  let showsStatistics: Bool

  private static let operations = ["set", "update", "remove", "increment", "priority"]

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    last = try arguments.integer("last", in: 1...1_000_000)
    isReversed = arguments.has("reverse")
    isFollowing = arguments.has("follow")
    showsRecords = arguments.has("records")
    showsStatistics = arguments.has("stats")
    try Self.refuse(arguments, "follow", with: "reverse")
    // Nothing would come behind it.
    try Self.refuse(arguments, "follow", with: "until")
    for option in ["last", "reverse", "follow", "records"] {
      try Self.refuse(arguments, "stats", with: option)
    }
    for option in ["path", "operation", "grep", "system"] {
      try Self.refuse(arguments, "records", with: option)
    }
    filter.path = try arguments.value("path").map { try PathPattern($0) }
    filter.text = arguments.value("grep")
    filter.isOfSecondRoot = arguments.has("system")
    if let names = arguments.value("operation") {
      filter.operations = Set(names.split(separator: ",").map(String.init))
      for name in filter.operations where !Self.operations.contains(name) {
        let near = suggestion(for: name, among: Self.operations)
        throw Failure.usage(
          "--operation takes \(Self.operations.joined(separator: ", ")), not \(Failure.quoted(name))",
          hint: near.map { "did you mean '\($0)'?" })
      }
      guard !filter.operations.isEmpty else { throw Failure.usage("--operation is empty") }
    }
    let since = try Self.place(arguments, "since")
    let until = try Self.place(arguments, "until")
    guard since.lsn ?? 0 <= until.lsn ?? .max, since.time ?? .min <= until.time ?? .max else {
      throw Failure.usage("--since is later than --until")
    }
    filter.lsn = (since.lsn ?? 0)...(until.lsn ?? .max)
    filter.time = (since.time ?? .min)...(until.time ?? .max)
  }

  private static func refuse(_ arguments: Arguments, _ a: String, with b: String) throws {
    guard arguments.has(a), arguments.has(b) else { return }
    throw Failure.usage("--\(a) and --\(b) cannot be given together")
  }

  private static func place(_ arguments: Arguments, _ option: String) throws
    -> (lsn: UInt64?, time: Int64?)
  {
    switch try HistoryPoint(arguments, option) {
    case .lsn(let lsn): (lsn.rawValue, nil)
    case .time(let time): (nil, time)
    case nil: (nil, nil)
    }
  }

  func openDirectory() throws -> DatabaseDirectory {
    let path = try arguments.directoryPath()
    let directory =
      isFollowing
      ? try DatabaseDirectory.open(path, environment: .system, mode: .following)
      : try DatabaseDirectory.openMended(path, environment: .system)
    guard try !directory.contents().isEmpty else {
      directory.close()
      throw Failure.noDatabase(at: arguments.directory)
    }
    return directory
  }

  /// The last write that is certainly in front of all that are wanted: reading begins behind it.
  func start(_ directory: DatabaseDirectory) throws -> LogSequenceNumber {
    var start = LogSequenceNumber(max(1, filter.lsn.lowerBound) - 1)
    guard filter.time.lowerBound > .min else { return start }
    // No write is older than the base time of its segment's successor.
    for segment in try directory.contents().segments.reversed() {
      guard let header = try? SegmentHeader.read(segment, in: directory) else { continue }
      if header.baseTime < filter.time.lowerBound {
        start = max(start, header.firstLSN.previous)
        break
      }
    }
    return start
  }
}

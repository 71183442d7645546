import DendroPlatform

/// How many file descriptors the process may have, of which some stay free for what is no connection.
///
/// The system gives the lowest free number, so that the number of a new descriptor says how many there are at least. Without
/// a free one not only the server is helpless: Dispatch, which opens a file each second, ends the process.
struct DescriptorLimit {
  let count: Int

  /// With fewer no server begins.
  static let countMin = 64

  /// That of the process at this moment.
  static var current: DescriptorLimit {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return DescriptorLimit(count: countMin) }
    return DescriptorLimit(count: Int(clamping: limit.rlim_cur))
  }

  /// Raises the limit of the process as far as it may.
  static func raise() {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
  }

  /// Whether a new connection with a descriptor leaves enough of them.
  func hasRoom(behind descriptor: Int32) -> Bool { Int(descriptor) < count - keptCount }

  /// The databases that may be open at a time, which take a quarter of all.
  ///
  /// - Parameter each: the descriptors of one.
  func databaseCount(each: Int) -> Int { max(2, count / 4 / each) }

  /// Whether a database can be opened, with the files that it needs at a time.
  var hasRoomForDatabase: Bool {
    // Every system has it, even without /dev.
    let probe = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard probe >= 0 else { return errno != EMFILE && errno != ENFILE }
    defer { close(probe) }
    return Int(probe) < count - keptCount / 2
  }

  /// What connections leave free.
  private var keptCount: Int { min(256, count / 4) }

  /// The connections that there is room for.
  ///
  /// - Parameter each: the descriptors of one.
  func connectionCount(each: Int) -> Int { max(1, (count - keptCount) / each) }

  #if canImport(Glibc)
    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
  #else
    private static var resource: Int32 { RLIMIT_NOFILE }
  #endif
}

extension DatabaseServerOptions {
  /// With limits for which the process has descriptors.
  func fitting(_ limit: DescriptorLimit) throws(DatabaseServerError) -> DatabaseServerOptions {
    guard limit.count >= DescriptorLimit.countMin else {
      throw DatabaseServerError(
        "the process may open \(limit.count) files, and a server needs at least \(DescriptorLimit.countMin)"
      )
    }
    let room = limit.connectionCount(each: tls == nil ? 1 : 3)
    var options = self
    options.connectionLimit = min(connectionLimit, max(1, room / 2))
    options.sessionLimit = min(sessionLimit, max(1, room * 2 / 3))
    return options
  }
}

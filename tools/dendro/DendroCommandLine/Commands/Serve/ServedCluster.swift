import Dendro
import DendroCluster
import DendroPlatform
import DendroServer
import Dispatch
import Synchronization

/// What the arguments of `serve` say about the servers with which this one shares its databases.
struct ServedCluster {
  /// Of PostgreSQL, as libpq reads it.
  private let address: String
  private let directory: String
  private let ownAddress: AdvertisedAddress
  /// To the other servers; nil: all goes through PostgreSQL.
  private let lines: ServerLines?

  /// - Returns: nil if the server serves alone.
  /// - Throws: if the arguments contradict each other, or the address is none.
  init?(_ arguments: Arguments, hosts: [String]) throws {
    guard let address = try ClusterAddress(arguments, arguments.value("cluster")) else {
      for option in ["advertise", "lines"] where arguments.has(option) {
        throw Failure.usage("--\(option) needs --cluster")
      }
      return nil
    }
    for (option, reason) in Self.excluded where arguments.has(option) {
      throw Failure.usage("--\(option) contradicts \(address.name): \(reason)")
    }
    guard !arguments.positional.isEmpty else { throw Failure.usage("DIRECTORY is missing") }
    directory = try arguments.directoryPath()
    self.address = address.text
    ownAddress = try AdvertisedAddress(
      arguments.value("advertise"), hosts: hosts, isSecure: arguments.has("tls-certificate"))
    if try ServedData.isDatabase(directory) || Database.isClusterCopy(at: directory) {
      throw Failure.usage(
        "\(arguments.directory) is one database: with \(address.name), DIRECTORY has one for each namespace",
        hint: "give a new directory")
    }
    for name in OpeningNamespaces.names(in: directory)
    where try ServedData.isDatabase("\(directory)/\(name)") {
      throw Failure.usage(
        "\("\(arguments.directory)/\(name)".printable) is a database of its own, whose data would not show",
        hint: "give a new directory, or move its *.log and *.checkpoint elsewhere")
    }
    lines = try Self.lines(
      arguments.value("lines"), host: hosts.first ?? "127.0.0.1", advertised: ownAddress.bareHost)
  }

  /// - Parameters:
  ///   - given: a port, a host and a port, or "off"; nil for a port that the system chooses.
  ///   - host: at which the server listens.
  ///   - advertised: by which others reach this machine.
  private static func lines(
    _ given: String?, host: String, advertised: String
  ) throws -> ServerLines? {
    if given == "off" { return nil }
    let text = given ?? "0"
    let colon = text.lastIndex(of: ":")
    let place = colon.map { String(text[..<$0]) } ?? host
    guard let port = UInt16(colon.map { text[text.index(after: $0)...] } ?? text[...]),
      !place.isEmpty
    else {
      throw Failure.usage("--lines takes PORT, HOST:PORT or off, not \(Failure.quoted(text))")
    }
    do throws(DatabaseError) {
      return try ServerLines(
        listeningAt: place.trimmingBrackets, port: port, advertisedHost: advertised)
    } catch {
      throw Failure(.unavailable, "lines of other servers cannot be taken: \(error.message)")
    }
  }

  private static let excluded = [
    ("memory", "each server has a copy of the data on its disk"),
    ("import", "the data are those of all servers; write them to one that serves"),
    ("durability", "PostgreSQL decides when a write is durable"),
  ]

  /// Where the database of a namespace is.
  func databasePath(_ name: String) -> String { Database.clusterCopy(at: copy(of: name)) }

  private func copy(of name: String) -> String { "\(directory)/\(name)" }

  /// A database for each name that has one here or elsewhere, or that is made.
  ///
  /// - Parameter name: of the database that requests without a name are for.
  func namespaces(
    default name: String, limits: OpeningNamespaces.Limits, options: DatabaseOptions, log: ServeLog
  ) -> OpeningNamespaces {
    var limits = limits
    // This server could not take over what it has closed.
    limits.idleTime = .seconds(100 * 366 * 86400)
    let flushes = Histogram()
    var options = options
    options.metrics = { metric in
      if metric.name == "dendro.synchronize.seconds" { flushes.observe(seconds: metric.value) }
    }
    let measured = options
    let names = ClusterNames(address)
    return OpeningNamespaces(default: name, limits: limits, flushes: flushes) { [directory] in
      let elsewhere = ((try? names.all()) ?? []).filter(DatabaseServer.isNamespace)
      return Array(Set(OpeningNamespaces.names(in: directory) + elsewhere + [name]))
    } mayHaveLeftovers: { _ in
      // All are opened at the beginning, so that this server can take over in each.
      true
    } directory: { [directory] name in
      "\(directory)/\(name)"
    } existsElsewhere: { name in
      try names.has(name)
    } peer: { database in
      database.clusterStatus.map { PeerStatus($0) }
    } report: {
      log.note($0)
    } opener: { [address, directory, ownAddress, lines] name in
      let path = "\(directory)/\(name)"
      guard OpeningNamespaces.isDirectory(path) ?? true else {
        throw NamespaceError.noDirectory(name)
      }
      var options = measured
      options.logging = { log.note(NamespaceEvent(name, $0)) }
      let errors = UnawaitedErrors(of: name) { log.note($0) }
      options.errorHandler = { errors.add($0) }
      return try Database.open(
        at: path, replicatedBy: address, namespace: name, reachedAt: ownAddress.wait(),
        lines: lines, options: options)
    }
  }

  /// Says at which port the server listens, so that databases are opened; to be called also if it does not start. The first
  /// call counts.
  ///
  /// - Returns: where clients reach this server.
  @discardableResult
  func listens(at port: UInt16) -> String { ownAddress.set(port: port) }

  /// Refuses to serve copies as if they were databases of their own: what is written there would be lost.
  static func refuseCopies(in directory: String, named word: String) throws {
    let copies =
      [directory, directory + "/.."]
      + OpeningNamespaces.names(in: directory)
      .map { "\(directory)/\($0)" }
    guard copies.contains(where: { Database.isClusterCopy(at: $0) }) else { return }
    throw Failure(
      .badInput, "\(word) has copies of databases that several servers have together",
      hint: "--cluster ADDRESS serves them")
  }
}

/// Where clients reach this server. The port is known once it listens.
private final class AdvertisedAddress: Sendable {
  private let scheme: String
  private let host: String
  private let hasPort: Bool
  /// Empty until the port is known.
  private let text = Mutex("")
  /// Signalled once the port is known, for one that waits at a time.
  private let isKnown = DispatchSemaphore(value: 0)

  /// - Parameters:
  ///   - given: a host, with a port or without, or a URL; nil for that at which the server listens.
  ///   - hosts: at which it listens.
  init(_ given: String?, hosts: [String], isSecure: Bool) throws {
    var rest = given ?? Self.host(of: hosts)
    scheme =
      ["http://", "https://"].first { rest.hasPrefix($0) } ?? (isSecure ? "https://" : "http://")
    if rest.hasPrefix(scheme) { rest.removeFirst(scheme.count) }
    guard !rest.isEmpty, rest.utf8.count <= 256,
      rest.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !#""\<>@"#.utf8.contains($0) })
    else {
      throw Failure.usage(
        "--advertise takes HOST, HOST:PORT or a URL, not \(Failure.quoted(given ?? rest))")
    }
    host = rest
    let isURL = given?.contains("://") ?? false
    hasPort = isURL || rest.contains(/:[0-9]+$/) && !rest.hasSuffix("]")
  }

  /// The first host, or the name of the machine if the server listens at all addresses.
  private static func host(of hosts: [String]) -> String {
    let first = hosts.first ?? "127.0.0.1"
    if ["0.0.0.0", "::", "*"].contains(first) {
      var name = [CChar](repeating: 0, count: 256)
      guard gethostname(&name, name.count - 1) == 0, name[0] != 0 else { return "localhost" }
      return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    return first.contains(":") ? "[\(first)]" : first
  }

  /// The host alone.
  var bareHost: String {
    let first = String(host.prefix { $0 != "/" })
    let end = first.contains(/:[0-9]+$/) && !first.hasSuffix("]") ? first.lastIndex(of: ":") : nil
    return (end.map { String(first[..<$0]) } ?? first).trimmingBrackets
  }

  /// - Returns: the address. The first port counts.
  func set(port: UInt16) -> String {
    text.withLock { text in
      if text.isEmpty {
        text = scheme + host + (hasPort ? "" : ":\(port)")
        isKnown.signal()
      }
      return text
    }
  }

  /// Waits until the port is known.
  func wait() -> String {
    isKnown.wait()
    isKnown.signal()
    return text.withLock { $0 }
  }
}

extension String {
  /// An address of IPv6 as URLs have it, without its brackets.
  fileprivate var trimmingBrackets: String {
    hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self
  }
}

extension PeerStatus {
  init(_ status: ClusterStatus) {
    switch status.role {
    case .leader: self.init(.leader)
    case .follower: self.init(.follower)
    case .stopped: self.init(.stopped)
    }
    epoch = status.epoch
    lsn = status.lsn
    sharedLSN = status.sharedLSN
    appendCount = status.appendCount
    appendTime = status.appendTime
    undecidedCount = status.undecidedCount
    takeoverCount = status.takeoverCount
    trouble = status.trouble
    lineCount = status.lineCount
    if case .stopped(let reason) = status.role { trouble = reason }
    server = status.server
    leader = status.leader
    leaderAddress = status.leaderAddress
  }
}

import Dendro
import DendroCluster

extension ClusterAction {
  static let status = Self(
    name: "status",
    run: { arguments, address in
      let overview: ClusterOverview?
      do throws(DatabaseError) {
        overview = try ClusterReader(address).overview()
      } catch {
        throw Failure(.unavailable, error.message)
      }
      guard let overview else {
        throw Failure(.problem, "no servers share databases over this PostgreSQL")
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(overview.json.text)
      } else {
        try overview.print(to: terminal)
      }
      try terminal.flush()
      return .success
    })
}

extension ClusterOverview {
  fileprivate var json: JSONValue {
    .object([
      ("cluster", .string(id)), ("version", .integer(version)),
      ("namespaces", .array(namespaces.map(\.json))),
    ])
  }

  fileprivate func print(to terminal: Terminal) throws {
    let count = Format.count(namespaces.count, "namespace")
    try terminal.report("cluster \(id): \(count)")
    for namespace in namespaces {
      try terminal.print()
      try namespace.print(to: terminal)
    }
  }
}

extension ClusterOverview.Namespace {
  /// How many writes a server has still to take.
  private func lag(of server: ClusterOverview.Server) -> UInt64 { lsn - min(lsn, server.lsn) }

  fileprivate var json: JSONValue {
    let servers = servers.map { server -> JSONValue in
      .object([
        ("server", .string(server.name)), ("address", .text(server.address)),
        ("lsn", .unsigned(server.lsn)), ("lag", .unsigned(lag(of: server))),
        ("beats", .integer(server.counter)),
        ("silent", .bool(server.isSilent)), ("drained", .bool(server.isDrained)),
      ])
    }
    return .object([
      ("name", .string(name)), ("epoch", .integer(epoch)), ("leader", .text(leader)),
      ("leaderAddress", .text(leaderAddress)), ("place", .text(place)), ("lsn", .unsigned(lsn)),
      ("rows", .integer(rowCount)), ("bytes", .integer(byteCount)), ("servers", .array(servers)),
    ])
  }

  fileprivate func print(to terminal: Terminal) throws {
    let log = "\(Format.count(rowCount, "row")), \(Format.bytes(UInt64(clamping: byteCount)))"
    try terminal.report(
      "\(name.printable): write \(Format.count(lsn)), epoch \(Format.count(epoch)), log of \(log)"
        + (leader == nil ? ", no leader" : "")
        + (place.map { ", moved to \($0.printable)" } ?? ""))
    for server in servers {
      let lag = lag(of: server)
      let part = server.name == leader ? "leads" : "follows"
      let behind = lag == 0 ? "" : ", \(Format.count(lag, "write")) behind"
      let silent = server.isSilent ? ", silent" : ""
      let drained = server.isDrained ? ", drained" : ""
      try terminal.report(
        "  \((server.address ?? server.name).printable) \(part), write \(Format.count(server.lsn))\(behind)\(silent)\(drained)",
        hanging: 4)
    }
  }
}

extension JSONValue {
  static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
}

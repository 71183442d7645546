import Dendro
import DendroCluster

extension Command {
  static let cluster = Command(
    name: "cluster", summary: "show the servers that share databases over PostgreSQL",
    discussion: """
      status ADDRESS reads what PostgreSQL has of the servers that 'dendro serve --cluster ADDRESS' has started:
      for each namespace how often the leading has changed hands, the last write, what the log has, and the
      servers, with the writes that each has still to take. A server says about once a second what it has; one
      that was killed stays in the list. Nothing is written, and no table is made.

      ADDRESS is as libpq reads it: a postgresql:// URL, or a line of keys and values. If it is left out, it is
      that of the environment variable DENDRO_CLUSTER, which other users of the machine do not see. A
      password rather stands in a file that PGPASSFILE names, or in a service file.
      """,
    parameters: [
      Parameter(name: "ACTION", summary: "status"),
      Parameter(
        name: "ADDRESS", summary: "of PostgreSQL; DENDRO_CLUSTER if left out", isOptional: true),
    ],
    options: [.json],
    examples: [
      Example(
        line: "dendro cluster status postgresql://dendro@db1,db2/dendro",
        summary: "who leads, and who is behind?")
    ],
    run: { arguments in
      guard arguments.positional[0] == "status" else {
        throw Failure.usage("ACTION is status, not \(Failure.quoted(arguments.positional[0]))")
      }
      guard let address = try ClusterAddress(arguments, arguments.positional(1)) else {
        throw Failure.usage("ADDRESS is missing, and DENDRO_CLUSTER is not set")
      }
      let overview: ClusterOverview?
      do throws(DatabaseError) {
        overview = try ClusterReader(address.text).overview()
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
      ])
    }
    return .object([
      ("name", .string(name)), ("epoch", .integer(epoch)), ("leader", .text(leader)),
      ("leaderAddress", .text(leaderAddress)), ("lsn", .unsigned(lsn)),
      ("rows", .integer(rowCount)), ("bytes", .integer(byteCount)), ("servers", .array(servers)),
    ])
  }

  fileprivate func print(to terminal: Terminal) throws {
    let log = "\(Format.count(rowCount, "row")), \(Format.bytes(UInt64(clamping: byteCount)))"
    try terminal.report(
      "\(name.printable): write \(Format.count(lsn)), epoch \(Format.count(epoch)), log of \(log)"
        + (leader == nil ? ", no leader" : ""))
    for server in servers {
      let lag = lag(of: server)
      let part = server.name == leader ? "leads" : "follows"
      let behind = lag == 0 ? "" : ", \(Format.count(lag, "write")) behind"
      try terminal.report(
        "  \((server.address ?? server.name).printable) \(part), write \(Format.count(server.lsn))\(behind)",
        hanging: 4)
    }
  }
}

extension JSONValue {
  fileprivate static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
}

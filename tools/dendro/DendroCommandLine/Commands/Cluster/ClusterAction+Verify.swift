import Dendro
import DendroCluster

extension ClusterAction {
  static let verify = Self(
    name: "verify", words: ["NAMESPACE"],
    run: { arguments, address in
      let namespace = arguments.positional[1]
      let found: ClusterVerification
      do throws(RepairFailure) {
        found = try ClusterVerification.run(namespace, address: address)
      } catch {
        throw Failure(error)
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(found.json(of: namespace).text)
      } else {
        try found.print(namespace, to: terminal)
      }
      try terminal.flush()
      return found.verdict.exitCode
    })
}

extension ClusterVerification.Verdict {
  fileprivate var exitCode: ExitCode {
    switch self {
    case .agree: .success
    case .differ: .problem
    case .incomplete: .unavailable
    }
  }

  fileprivate var name: String {
    switch self {
    case .agree: "agree"
    case .differ: "differ"
    case .incomplete: "incomplete"
    }
  }
}

extension ClusterVerification {
  fileprivate func json(of namespace: String) -> JSONValue {
    .object([
      ("namespace", .string(namespace)), ("lsn", .unsigned(lsn)),
      ("verdict", .string(verdict.name)),
      (
        "servers",
        .array(
          servers.map { server in
            .object([
              ("server", .string(server.name)), ("address", .text(server.address)),
              ("hash", .text(server.hash.map(Survey.hash))),
              ("systemHash", .text(server.systemHash.map(Survey.hash))),
            ])
          })
      ),
    ])
  }

  fileprivate func print(_ namespace: String, to terminal: Terminal) throws {
    let count = Format.count(servers.count, "server")
    try terminal.report("\(namespace.printable): \(count) at write \(Format.count(lsn))")
    let rows = servers.map { server in
      let name = (server.address ?? server.name).printable
      let hashes = server.hash.map { hash in
        Survey.hash(hash)
          + (server.systemHash.map { ", beside the data \(Survey.hash($0))" } ?? "")
      }
      return (name, hashes ?? "has not answered")
    }
    let width = rows.map(\.0.columnCount).max() ?? 0
    for (name, hashes) in rows {
      try terminal.report("  \(name.paddedToColumns(width))  \(hashes)", hanging: 4)
    }
    let verdict =
      switch verdict {
      case .agree: servers.count == 1 ? "there is no other server to compare it with" : "all agree"
      case .differ: "they DIFFER"
      case .incomplete: "those that have answered agree"
      }
    try terminal.report(verdict)
  }
}

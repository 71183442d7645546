import DendroCluster

extension ClusterAction {
  static let drain = Self(
    name: "drain", words: ["SERVER"], options: ["end"],
    run: { arguments, address in
      let server = arguments.positional[1]
      let terminal = try Terminal(color: arguments.value("color"))
      let namespaces: [ClusterDrain.Namespace]
      do throws(RepairFailure) {
        let drain = try ClusterDrain(address)
        if arguments.has("end") {
          try drain.end(server)
          namespaces = []
        } else {
          namespaces = try drain.begin(server)
        }
      } catch {
        throw Failure(error)
      }
      let isDone = namespaces.allSatisfy { $0.leader != nil }
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("server", .string(server)), ("drained", .bool(!arguments.has("end"))),
            (
              "namespaces",
              .array(
                namespaces.map {
                  .object([("name", .string($0.name)), ("leader", .text($0.leader))])
                })
            ),
          ]).text)
      } else if arguments.has("end") {
        try terminal.report("\(server.printable) leads again once that is its turn")
      } else {
        for namespace in namespaces {
          try terminal.report(
            "\(namespace.name.printable): "
              + (namespace.leader.map { "\($0.printable) leads" }
                ?? "\(server.printable) still leads, since no other server is there, in step and not drained"),
            hanging: 2)
        }
        if isDone { try terminal.report("\(server.printable) leads nothing") }
      }
      try terminal.flush()
      return isDone ? .success : .problem
    })

  static let move = Self(
    name: "move", words: ["NAMESPACE", "SERVER"], endWordCount: 1, options: ["end"],
    run: { arguments, address in
      let namespace = arguments.positional[1]
      // Nil: the servers choose.
      let server = arguments.has("end") ? nil : arguments.positional[2]
      let isNew: Bool
      do throws(RepairFailure) {
        if let server {
          isNew = try ClusterMove.run(namespace, to: server, address: address)
        } else {
          try ClusterMove.end(namespace, address: address)
          isNew = false
        }
      } catch {
        throw Failure(error)
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("namespace", .string(namespace)), ("leader", .text(server)), ("moved", .bool(isNew)),
          ]).text)
      } else if let server {
        try terminal.report(
          "\(namespace.printable): \(server.printable) leads\(isNew ? "" : " already")")
      } else {
        try terminal.report("\(namespace.printable): its servers choose who leads")
      }
      try terminal.flush()
      return .success
    })
}

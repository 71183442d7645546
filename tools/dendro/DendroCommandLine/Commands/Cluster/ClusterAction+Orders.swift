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
                ?? "\(server.printable) still leads, since no other server is there and in step"),
            hanging: 2)
        }
        if isDone { try terminal.report("\(server.printable) leads nothing") }
      }
      try terminal.flush()
      return isDone ? .success : .problem
    })

  static let move = Self(
    name: "move", words: ["NAMESPACE", "SERVER"],
    run: { arguments, address in
      let (namespace, server) = (arguments.positional[1], arguments.positional[2])
      let isNew: Bool
      do throws(RepairFailure) {
        isNew = try ClusterMove.run(namespace, to: server, address: address)
      } catch {
        throw Failure(error)
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("namespace", .string(namespace)), ("leader", .string(server)), ("moved", .bool(isNew)),
          ]).text)
      } else {
        try terminal.report(
          "\(namespace.printable): \(server.printable) leads\(isNew ? "" : " already")")
      }
      try terminal.flush()
      return .success
    })
}

import Dendro
import DendroEngine
import DendroProtocol
import DendroTree

extension Command {
  static let pending = Command(
    name: "pending", summary: "list the writes that a server has not answered",
    discussion: """
      Of a directory whose database keeps in step with a server: the writes that were made and wait for the
      server, in their order, each with the time of its making and its user. They are sent after the next
      opening, once that user is signed in. One that was sent before is sent again, since the server may not have
      it. One that is held waits until the app decides, since the server cannot tell whether it has made the
      write. Works beside a running writer.
      """,
    parameters: [.directory],
    options: [.json],
    examples: [Example(line: "dendro pending db", summary: "what the server does not know yet")],
    run: { arguments in
      let engine = try Engine.open(at: arguments.directoryPath(), mode: .readOnly)
      defer { try? engine.close() }
      guard let sync = SyncedData(of: engine) else {
        throw Failure(
          .problem, "the database at \(arguments.directory) keeps in step with no server")
      }
      let terminal = try Terminal(color: arguments.value("color"))
      let lines = LogLines(terminal: terminal, isJSON: arguments.wantsJSON)
      for (number, write) in sync.writes { try terminal.print(lines.line(number, write)) }
      if !arguments.wantsJSON {
        let count = Format.count(sync.writes.count, "write")
        Terminal.note(
          "\(count) \(sync.writes.count == 1 ? "waits" : "wait") for \(sync.server.printable)")
      }
      try terminal.flush()
      return .success
    })
}

/// What a directory keeps of a server's data.
struct SyncedData {
  let server: String
  let writes: [(number: Int, write: OutgoingWrite)]
  /// How many locations and queries are kept.
  let targetCount: Int

  /// - Returns: nil if the data are the database's own.
  init?(of engine: Engine) {
    guard let server = SyncedDirectory.server(of: engine) else { return nil }
    let sync = engine.systemNode(at: SyncedDirectory.root)
    self.server = server
    writes = SyncRecords.writes(in: sync)
    targetCount = sync.child(SyncRecords.targets).childCount
  }
}

extension LogLines {
  /// The line of a write that waits for a server. What the server is to compute shows as what stands in for it.
  fileprivate func line(_ number: Int, _ pending: OutgoingWrite) -> String {
    let write = pending.draft.write
    guard isJSON else {
      let columns = [
        "\(number)".leftPadded(to: 6), Format.time(pending.time),
        pending.user.text.printable,
        pending.isHeld ? "held" : pending.isSent ? "sent" : "", Self.operation(write),
        "\(write.path)".printable, value(write),
      ]
      return columns.filter { !$0.isEmpty }.joined(separator: "  ")
    }
    return JSONValue.object(
      [
        ("number", .count(number)), ("time", .integer(pending.time)),
        ("user", .string(pending.user.text)), ("operation", .string(Self.operation(write))),
        ("path", .string("\(write.path)")),
        ("sent", .bool(pending.isSent)), ("held", .bool(pending.isHeld)),
        ("serverValues", .count(pending.draft.deferred.count)),
      ] + Self.members(of: write)
    ).text
  }
}

import Dendro
import DendroServer

/// The lines of a server's log, on standard error: one for each request, and one for what happens with a database.
struct ServeLog: Sendable {
  let isJSON: Bool
  private let lines: QueuedLines

  init(isJSON: Bool) {
    self.isJSON = isJSON
    lines = QueuedLines { count in
      let message = "standard error was full, and lines are left out"
      return Self.line(.warning, nil, message, ["count": "\(count)"], isJSON: isJSON)
    }
  }

  /// Waits for a moment until all lines are written.
  func finish() { lines.finish() }

  /// A request that was answered.
  func note(_ record: AccessRecord) {
    let milliseconds = record.duration / .milliseconds(1)
    guard isJSON else {
      let client = record.client.isEmpty ? "-" : record.client
      let took = Format.decimal(milliseconds, places: 1)
      return lines.add(
        "\(Format.time(record.time)) \(client) \(record.namespace ?? "-") \(record.status) "
          + "\(record.method) \(record.target) \(took) ms")
    }
    write([
      ("time", .integer(record.time)), ("client", .string(record.client)),
      ("namespace", record.namespace.map { .string($0) } ?? .null),
      ("method", .string(record.method)), ("target", .string(record.target)),
      ("status", .integer(Int64(record.status))), ("milliseconds", .number(milliseconds)),
    ])
  }

  /// Something that happened with a database.
  func note(_ event: NamespaceEvent) {
    note(event.level, event.namespace, event.message, event.details)
  }

  /// Something about the server itself.
  func note(_ level: Database.LogMessage.Level, _ message: String) {
    note(level, nil, message, [:])
  }

  private func note(
    _ level: Database.LogMessage.Level, _ namespace: String?, _ message: String,
    _ details: [String: String]
  ) {
    lines.add(Self.line(level, namespace, message, details, isJSON: isJSON))
  }

  private static func line(
    _ level: Database.LogMessage.Level, _ namespace: String?, _ message: String,
    _ details: [String: String], isJSON: Bool
  ) -> String {
    let details = details.sorted { $0.key < $1.key }
    guard isJSON else {
      let text = details.map { "\($0.key): \($0.value)" }.joined(separator: ", ")
      return "\(Format.time(Platform.now())) \(level.rawValue) \(namespace ?? "-") \(message)"
        + (text.isEmpty ? "" : " (\(text))")
    }
    return JSONValue.object([
      ("time", .integer(Platform.now())), ("level", .string(level.rawValue)),
      ("namespace", namespace.map { .string($0) } ?? .null), ("message", .string(message)),
      ("details", .object(details.map { ($0.key, .string($0.value)) })),
    ]).text
  }

  private func write(_ members: [(String, JSONValue)]) {
    lines.add(JSONValue.object(members).text)
  }
}

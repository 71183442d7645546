import Dendro
import DendroTestSupport
import Foundation
import Synchronization
import Testing

// What Swift Log and Swift Metrics declare, as far as the recipes use it.

private struct Logger: Sendable {
  enum Level: String, Sendable { case trace, debug, info, notice, warning, error, critical }
  enum MetadataValue: Sendable { case string(String) }

  static let lines = Mutex<[(Level, String, [String: String])]>([])

  func log(
    level: Level, _ message: @autoclosure () -> String, metadata: [String: MetadataValue]? = nil
  ) {
    let details = (metadata ?? [:]).mapValues { value in
      switch value {
      case .string(let text): text
      }
    }
    let text = message()
    Self.lines.withLock { $0.append((level, text, details)) }
  }
}

private enum MetricsSystem {
  static let figures = Mutex<[String: [Double]]>([:])

  static func note(_ label: String, _ dimensions: [(String, String)], _ value: Double) {
    let name = ([label] + dimensions.map { "\($0)=\($1)" }).joined(separator: " ")
    figures.withLock { $0[name, default: []].append(value) }
  }
}

private struct Counter {
  let label: String
  let dimensions: [(String, String)]
  func increment(by amount: Int64) { MetricsSystem.note(label, dimensions, Double(amount)) }
}

private struct Gauge {
  let label: String
  let dimensions: [(String, String)]
  func record(_ value: Double) { MetricsSystem.note(label, dimensions, value) }
}

private struct Timer {
  let label: String
  let dimensions: [(String, String)]
  func recordSeconds(_ value: Double) { MetricsSystem.note(label, dimensions, value) }
}

// sample
extension DatabaseOptions {
  /// Passes the lines of a database to a logger.
  fileprivate mutating func log(to logger: Logger) {
    logging = { line in
      let level: Logger.Level =
        switch line.level {
        case .debug: .debug
        case .info: .info
        case .warning: .warning
        case .error: .error
        }
      logger.log(
        level: level, "\(line.message)",
        metadata: line.metadata.mapValues { Logger.MetadataValue.string($0) })
    }
  }
}
// end

// sample
extension DatabaseOptions {
  /// Passes the figures of a database to the metrics system, with its name.
  mutating func measure(as name: String) {
    metrics = { metric in
      let dimensions = [("database", name)]
      switch metric.kind {
      case .counter:
        Counter(label: metric.name, dimensions: dimensions).increment(by: Int64(metric.value))
      case .gauge:
        Gauge(label: metric.name, dimensions: dimensions).record(metric.value)
      case .timer:
        Timer(label: metric.name, dimensions: dimensions).recordSeconds(metric.value)
      }
    }
  }
}
// end

@Suite("Monitoring.md")
struct MonitoringSamples {
  private static let article: String = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let file = root.appendingPathComponent("Sources/Dendro/Dendro.docc/Monitoring.md")
    return (try? String(contentsOf: file, encoding: .utf8)) ?? ""
  }()

  @Test("the recipes pass lines and figures on, each of which stands in the article")
  func recipes() async throws {
    let directory = TemporaryDirectory()
    var options = DatabaseOptions()
    options.log(to: Logger())
    options.measure(as: "blog")
    for number in 0..<2 {
      let database = try await Database.open(at: directory.path, options: options)
      try await database.reference().child("n").setValue(number)
      try await database.checkpoint()
      try await database.reference().child("n").setValue(number + 10)
      try await database.close()
    }
    let last = "dendro.checkpoint.unread.chunks database=blog"
    while MetricsSystem.figures.withLock({ $0[last]?.count ?? 0 }) < 4 { await Task.yield() }
    let lines = Logger.lines.withLock { $0 }
    #expect(lines.contains { $0.0 == .info && $0.1 == "a new database was made" })
    #expect(lines.contains { $0.1 == "the database is open" && $0.2["lastLSN"] == "2" })
    #expect(lines.filter { $0.1 == "checkpoint taken" }.count == 2)
    for line in lines { #expect(Self.article.contains("| \(line.0) | \(line.1) |"), "\(line)") }
    let names = MetricsSystem.figures.withLock { Set($0.keys) }
    let described = Set(
      Self.article.split(separator: "\n").filter { $0.hasPrefix("| `dendro.") }
        .compactMap { $0.split(separator: "`").dropFirst().first.map { "\($0) database=blog" } })
    #expect(names == described)
  }
}

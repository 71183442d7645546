import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Synchronization

/// The data viewer: its page, and what that asks for beyond the clients' protocol: the log, and states of the past.
final class ViewerService: Sendable {
  /// The state that was asked for last: a page that is unfolded in the past asks for the same again and again.
  private let last = Mutex<(namespace: String, lsn: LogSequenceNumber, root: Node)?>(nil)

  /// Files of the page, by their targets.
  private static let files: [String: (type: String, bytes: [UInt8])] = [
    "/": ("text/html; charset=utf-8", PackageResources.viewer_html),
    "/.viewer/viewer.css": ("text/css; charset=utf-8", PackageResources.viewer_css),
    "/.viewer/viewer.js": ("text/javascript; charset=utf-8", PackageResources.viewer_js),
    "/.viewer/rules.css": ("text/css; charset=utf-8", PackageResources.rules_css),
    "/.viewer/rules.js": ("text/javascript; charset=utf-8", PackageResources.rules_js),
  ]

  /// What the page may do: nothing but talk to its own server.
  private static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    + "img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

  /// - Returns: nil for what is no file of the page.
  static func file(_ target: RequestTarget) -> RESTAnswer? {
    guard let file = files[target.path] else { return nil }
    var answer = RESTAnswer(page: file.bytes, type: file.type)
    answer.headers.append("Content-Security-Policy", policy)
    answer.headers.append("Referrer-Policy", "no-referrer")
    return answer
  }

  // MARK: The past

  /// Waits for the disk.
  func state(
    of namespace: Namespace, at lsn: LogSequenceNumber
  ) throws(EngineError) -> Node {
    let kept = last.withLock { last in
      last.flatMap { $0.namespace == namespace.name && $0.lsn == lsn ? $0.root : nil }
    }
    if let kept { return kept }
    guard let root = try namespace.engine.root(at: .lsn(lsn)) else { return .empty }
    last.withLock { $0 = (namespace.name, lsn, root) }
    return root
  }

  // MARK: The log

  /// The last writes that are on the disk.
  static func log(of engine: Engine, limit: Int) async throws(EngineError) -> String {
    let range = try await engine.historyRange()
    let durable = engine.statistics().durableLSN
    var items: [String] = []
    let first = LogSequenceNumber(
      max(range.oldest.rawValue, durable.rawValue - min(durable.rawValue, UInt64(limit))))
    var last = first
    if first < durable {
      do throws(EngineError) {
        let reader = try engine.changes(since: first)
        // The last ones may be none of the data.
        while let page = try await reader.next(upTo: durable) {
          // Writes that come meanwhile make it more than were asked for.
          items = Array((items + page.suffix(limit).map(text)).suffix(limit))
          last = page.last?.lsn ?? last
        }
      } catch .noHistory {
        // In memory there is no log.
      }
    }
    let newest = items.isEmpty ? range.newest : max(range.newest, last)
    return
      "{\"oldest\":\(range.oldest.rawValue),\"newest\":\(newest.rawValue),"
      + "\"writes\":[\(items.joined(separator: ","))]}"
  }

  private static func text(_ write: LoggedWrite) -> String {
    var bytes = Array(
      "{\"lsn\":\(write.lsn.rawValue),\"time\":\(write.time),\"what\":\"\(name(write.write))\",\"path\":"
        .utf8)
    JSONText.append(string: write.write.path.description, to: &bytes)
    if let value = WritePreview.text(write.write) {
      bytes += Array(",\"value\":".utf8)
      JSONText.append(string: value, to: &bytes)
    }
    return String(decoding: bytes, as: UTF8.self) + "}"
  }

  private static func name(_ write: Write) -> String {
    switch write {
    case .set: "set"
    case .update(_, let entries): "update \(entries.count) of"
    case .remove: "remove"
    case .increment: "increment"
    case .setPriority: "priority of"
    }
  }
}

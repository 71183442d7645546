import Dendro
import Foundation
import Synchronization

/// Records the events of listeners, in order. They are removed with it: a database stays open, with its
/// threads, as long as it has listeners.
final class Recorder: Sendable {
  private let recorded = Mutex<[String]>([])
  private let listeners = Mutex<[(query: DatabaseQuery, handle: DatabaseHandle)]>([])
  private let database: Database

  init(_ database: Database) { self.database = database }

  deinit {
    for listener in listeners.withLock({ $0 }) {
      listener.query.removeObserver(withHandle: listener.handle)
    }
  }

  func note(_ line: String) { recorded.withLock { $0.append(line) } }

  /// Listens to every kind of event, or to some, under a name.
  @discardableResult
  func listen(
    _ name: String, _ query: DatabaseQuery, _ types: [DataEventType] = DataEventType.allCases
  ) -> [DatabaseHandle] {
    types.map { type in
      let handle = query.observe(
        type,
        andPreviousSiblingKeyWith: { [weak self] snapshot, previous in
          self?.note(Self.line(name, type, snapshot, previous))
        })
      listeners.withLock { $0.append((query, handle)) }
      return handle
    }
  }

  static func line(
    _ name: String, _ type: DataEventType, _ snapshot: DataSnapshot, _ previous: String?
  ) -> String {
    let value = shown(snapshot.valueInExportFormat())
    let prefix = name.isEmpty ? "" : name + ":"
    switch type {
    case .value: return "\(prefix)value \(value)"
    case .childRemoved: return "\(prefix)removed \(snapshot.key)=\(value)"
    case .childAdded: return "\(prefix)added \(snapshot.key)=\(value) after \(previous ?? "nil")"
    case .childChanged:
      return "\(prefix)changed \(snapshot.key)=\(value) after \(previous ?? "nil")"
    case .childMoved: return "\(prefix)moved \(snapshot.key)=\(value) after \(previous ?? "nil")"
    }
  }

  /// What was written down since the last call, once everything queued until now was delivered.
  func take() async -> [String] {
    await settle(database)
    return recorded.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }
}

/// Returns once everything that was queued for the callback queue was delivered.
func settle(_ database: Database) async {
  await withCheckedContinuation { continuation in
    database.reference().getData { _, _ in continuation.resume() }
  }
}

/// The error that `body` throws.
func failure(_ body: () async throws -> Void) async -> DatabaseError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? DatabaseError
  }
}

/// A new directory's path in the temporary directory, removed with the object.
final class TemporaryDirectory: Sendable {
  let path: String

  init() {
    path = NSTemporaryDirectory() + "/dendro-\(UUID().uuidString)"
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// A context that is not `async`, where a write without `await` has no completion.
@discardableResult
func plainly<R>(_ body: () throws -> R) rethrows -> R { try body() }

/// A value that several closures share.
final class Shared<Value: Sendable>: Sendable {
  private let mutex: Mutex<Value>

  init(_ value: Value) { mutex = Mutex(value) }

  var value: Value { mutex.withLock { $0 } }

  func withLock<R: Sendable>(_ body: @Sendable (inout Value) -> R) -> R {
    mutex.withLock { body(&$0) }
  }
}

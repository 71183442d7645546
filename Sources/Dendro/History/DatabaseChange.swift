import DendroEngine
import DendroStorage
import DendroTree
public import Foundation

/// One durable write, as it was asked for.
///
/// The clock is resolved: `ServerValue.timestamp()` is the number that was written. A transaction shows
/// as what it changed of the data that its block was given, an update of those places, or as the set of
/// all of it if that is shorter.
public struct DatabaseChange: Sendable {
  /// The number of the write.
  public let lsn: Database.LSN
  /// When it was admitted, in whole milliseconds; never before that of an earlier write.
  public let time: Date
  /// Where it took place.
  public let ref: DatabaseReference
  /// What it did there.
  public let operation: Operation

  /// The location as text: "/" for the root, "/users/ada".
  public var path: String { ref.location.description }

  /// What a write does at its location.
  public enum Operation: Sendable {
    /// Replaces all that is there by this, priorities included.
    case set(DataSnapshot)
    /// Changes several places at or below it at once, in the order of their paths; the rest stays.
    case update([Entry])
    /// Removes what is there.
    case remove
    /// Adds this number to the one that is there, or to 0.
    case increment(Scalar)
    /// Replaces the priority of what is there; nil takes it away.
    case setPriority(Scalar?)
  }

  /// One place of an update; its operation is no update.
  public struct Entry: Sendable {
    /// The place.
    public let ref: DatabaseReference
    /// What is done there.
    public let operation: Operation

    /// The place as text.
    public var path: String { ref.location.description }
  }

  /// A single value, exactly.
  public enum Scalar: Hashable, Sendable {
    /// A boolean.
    case bool(Bool)
    /// A number that is stored as an integer.
    case integer(Int64)
    /// A number that is stored as a double.
    case double(Double)
    /// A text.
    case string(String)
  }
}

extension DatabaseChange {
  init(_ logged: LoggedWrite, in database: Database) {
    let write = logged.write
    let ref = DatabaseReference(database, write.path)
    lsn = logged.lsn.rawValue
    time = Date(milliseconds: logged.time)
    self.ref = ref
    operation =
      switch write {
      case .set(_, let node): .set(DataSnapshot(node, at: ref))
      case .remove: .remove
      case .increment(_, let delta): .increment(Scalar(delta.scalar))
      case .setPriority(_, let priority): .setPriority(priority.map { Scalar($0) })
      case .update(_, let entries):
        .update(
          entries.sorted { $0.path < $1.path }.map { Entry($0, at: ref.appending($0.path)) })
      }
  }
}

extension DatabaseChange.Entry {
  fileprivate init(_ entry: Write.Entry, at ref: DatabaseReference) {
    self.ref = ref
    operation =
      switch entry.action {
      case .set(let node): .set(DataSnapshot(node, at: ref))
      case .remove: .remove
      case .increment(let delta): .increment(DatabaseChange.Scalar(delta.scalar))
      case .setPriority(let priority): .setPriority(priority.map { DatabaseChange.Scalar($0) })
      }
  }
}

extension DatabaseChange.Scalar {
  fileprivate init(_ scalar: DendroTree.Scalar) {
    self =
      switch scalar {
      case .bool(let value): .bool(value)
      case .integer(let value): .integer(value)
      case .double(let value): .double(value)
      case .string(let value): .string(value)
      case .bytes: preconditionFailure("the data have no bytes")
      }
  }
}

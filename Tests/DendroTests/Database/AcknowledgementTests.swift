import Dendro
import DendroTesting
import Foundation
import Testing

/// Every acknowledgement comes after the write's synchronize: in every form that the API has, for a single
/// writer and for one among many.
@Suite("Acknowledgements")
struct AcknowledgementTests {
  /// Every way to learn that a write is durable. Each makes `place` hold 1, or nothing for those that
  /// remove, and returns or calls then.
  enum Way: String, CaseIterable, Sendable {
    case set, setWithBlock, setWithPriority, setWithPriorityAndBlock, setPriority
    case setPriorityWithBlock, update, updateWithBlock, remove, removeWithBlock, increment, encoded
    case transaction, transactionWithBlock, nothingNew, nothingNewWithBlock
    case synchronize, synchronizeWithoutTask, checkpoint, close, leaving
  }

  @Test("come after the synchronize", arguments: Way.allCases, [false, true])
  func areDurable(way: Way, isAlone: Bool) async throws {
    let disk = SimulatedDisk(seed: 1)
    let database = try Database.open(at: "/db", on: disk)
    let isDone = Shared(false)
    // Neighbours, whose synchronize could be taken for one's own.
    async let neighbours: Void = withThrowingTaskGroup { group in
      for number in 0..<(isAlone ? 0 : 3) {
        group.addTask {
          var count = 0
          while !isDone.withLock({ $0 }) {
            count += 1
            try await database.reference().child("neighbours/\(number)").setValue(count)
          }
        }
      }
      try await group.waitForAll()
    }
    for round in 0..<5 {
      let place = database.reference(withPath: "places/\(round)")
      let removes = way == .remove || way == .removeWithBlock
      if removes || way == .setPriority || way == .setPriorityWithBlock {
        try await place.setValue(0)
      }
      if way == .increment { try await place.setValue(0) }
      let left = try await Self.received(way, place, database, disk)
      let found = try Database.open(at: "/db", on: left)
      let snapshot = try await found.reference(withPath: "places/\(round)").getData()
      switch way {
      case .remove, .removeWithBlock: #expect(!snapshot.exists(), "\(way)")
      case .setPriority, .setPriorityWithBlock: #expect(snapshot.priority as? Int == 1, "\(way)")
      default: #expect(snapshot.value as? Int == 1, "\(way)")
      }
      if way == .close || way == .leaving { break }
    }
    isDone.withLock { $0 = true }
    // After closing the neighbours are refused.
    do { try await neighbours } catch { #expect((error as? DatabaseError)?.code == .closed) }
  }

  /// The disk after a power loss at that moment, with nothing that was not synchronized.
  private static func received(
    _ way: Way, _ place: DatabaseReference, _ database: Database, _ disk: SimulatedDisk
  ) async throws -> SimulatedDisk {
    @Sendable func left() -> SimulatedDisk {
      let point = disk.crashPoint()
      return point.disk(point.allDropped)
    }
    func block(
      _ body: (@escaping @Sendable (Error?, DatabaseReference) -> Void) -> Void
    ) async throws -> SimulatedDisk {
      try await withCheckedThrowingContinuation { continuation in
        body { error, _ in
          continuation.resume(with: error.map { .failure($0) } ?? .success(left()))
        }
      }
    }
    let parent = try #require(place.parent)
    let key = try #require(place.key)
    switch way {
    case .set: try await place.setValue(1)
    case .setWithBlock: return try await block { place.setValue(1, withCompletionBlock: $0) }
    case .setWithPriority: try await place.setValue(1, andPriority: 2)
    case .setWithPriorityAndBlock:
      return try await block { place.setValue(1, andPriority: 2, withCompletionBlock: $0) }
    case .setPriority: try await place.setPriority(1)
    case .setPriorityWithBlock:
      return try await block { place.setPriority(1, withCompletionBlock: $0) }
    case .update: try await parent.updateChildValues([key: 1, "other": 2])
    case .updateWithBlock:
      return try await block {
        parent.updateChildValues([key: 1, "other": 2], withCompletionBlock: $0)
      }
    case .remove: try await place.removeValue()
    case .removeWithBlock: return try await block { place.removeValue(completionBlock: $0) }
    case .increment: try await place.setValue(ServerValue.increment(1))
    case .encoded: try await place.setValue(from: 1)
    case .transaction:
      _ = try await place.runTransactionBlock { data in
        data.value = 1
        return .success(withValue: data)
      }
    case .transactionWithBlock:
      return try await withCheckedThrowingContinuation { continuation in
        place.runTransactionBlock { data in
          data.value = 1
          return .success(withValue: data)
        } andCompletionBlock: { error, _, _ in
          continuation.resume(with: error.map { .failure($0) } ?? .success(left()))
        }
      }
    case .nothingNew:
      // The first has no completion; the second changes nothing and yet completes after it.
      plainly { place.setValue(1) }
      try await place.setValue(1)
    case .nothingNewWithBlock:
      plainly { place.setValue(1) }
      return try await block { place.setValue(1, withCompletionBlock: $0) }
    case .synchronize:
      plainly { place.setValue(1) }
      try await database.synchronize()
    case .synchronizeWithoutTask:
      plainly { place.setValue(1) }
      try plainly { try database.synchronize() }
    case .checkpoint:
      plainly { place.setValue(1) }
      try await database.checkpoint()
    case .close:
      plainly { place.setValue(1) }
      try await database.close()
    case .leaving:
      try await place.onDisconnectSetValue(1)
      try await database.close()
    }
    return left()
  }
}

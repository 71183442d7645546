import Dendro
import DendroEngine
import DendroTree
import Dispatch
import Foundation
import Testing

/// `close()` from wherever it can be called: nothing that was accepted is lost.
@Suite("Closing from within")
struct ClosingTests {
  let directory = TemporaryDirectory()

  enum Place: String, CaseIterable, Sendable {
    case transaction, asyncTransaction, writeInTransaction, event, cancelBlock, completion
    case transactionCompletion, errorHandler, logging, metrics, task
  }

  @Test(
    "what was written and what was registered for the end is there after reopening",
    arguments: Place.allCases)
  func from(place: Place) async throws {
    let called = Shared<Database?>(nil)
    let (outcomes, outcome) = AsyncStream<String>.makeStream()
    /// Writes and closes, once.
    let end: @Sendable () -> Void = {
      let database = called.withLock { database in
        defer { database = nil }
        return database
      }
      guard let database else { return }
      let ref = database.reference()
      ref.child("written").setValue(true)
      ref.updateChildValues(["updated": true])
      do {
        try database.close()
        outcome.yield("closed")
      } catch {
        outcome.yield("\(error)")
      }
    }
    var options = DatabaseOptions()
    if place == .errorHandler { options.errorHandler = { _ in end() } }
    if place == .logging { options.logging = { _ in end() } }
    if place == .metrics { options.metrics = { _ in end() } }
    let database = try await Database.open(at: directory.path, options: options)
    let ref = database.reference()
    try await ref.child("before").setValue(true)
    try await ref.child("left").onDisconnectSetValue(true)
    called.withLock { $0 = database }
    plainly {
      switch place {
      case .transaction:
        ref.child("decided").runTransactionBlock { data in
          end()
          data.value = true
          return .success(withValue: data)
        }
      case .asyncTransaction:
        Task {
          try await ref.child("decided").transaction { data in
            end()
            data.value = true
          }
        }
      case .writeInTransaction:
        ref.child("decided").runTransactionBlock { data in
          ref.child("within").setValue(true)
          // Another thread closes while the block runs.
          let isClosed = DispatchSemaphore(value: 0)
          Thread.detachNewThread {
            end()
            isClosed.signal()
          }
          isClosed.wait()
          return .abort()
        }
      case .event: ref.child("before").observe(.value) { _ in end() }
      case .cancelBlock:
        database.reference(withPath: "a.b").observe(
          .value, with: { _ in }, withCancel: { _ in end() })
      case .completion: ref.child("other").setValue(1) { _, _ in end() }
      case .transactionCompletion:
        ref.child("other").runTransactionBlock { _ in
          .abort()
        } andCompletionBlock: { _, _, _ in
          end()
        }
      case .errorHandler: database.reference(withPath: "a.b").setValue(1)
      case .logging: Task { try await database.checkpoint() }
      case .metrics: ref.child("other").setValue(1)
      case .task: Task { end() }
      }
    }
    #expect(await outcomes.first { _ in true } == "closed")
    // The directory is free once `close()` has returned.
    let reopened = try await Database.open(at: directory.path)
    let values = try await reopened.reference().getData()
    for name in ["before", "written", "updated", "left"] {
      #expect(values[name].bool == true, "\(name)")
    }
    #expect((values["within"].bool == true) == (place == .writeInTransaction))
    #expect(!values["decided"].exists())
    try await reopened.close()
  }

  @Test(
    "operations registered while the database is closed are written or refused", arguments: 0..<4)
  func racing(form: Int) async throws {
    for _ in 0..<50 {
      let database = Database.inMemory()
      let engine = try #require(database.engine)
      let root = database.reference()
      let count = 3
      // The last number that was accepted, for each.
      let accepted = Shared([Int](repeating: -1, count: count))
      let begun = Shared(0)
      await withTaskGroup { group in
        for index in 0..<count {
          group.addTask {
            await onThread {
              begun.withLock { $0 += 1 }
              let ref = root.child("\(index)")
              var number = 0
              while true {
                let isAccepted = Self.register(number, at: ref, form)
                guard isAccepted else { return }
                accepted.withLock { [number] in $0[index] = number }
                number += 1
              }
            }
          }
        }
        group.addTask {
          while begun.withLock({ $0 }) < count { await Task.yield() }
          #expect(await failure { try await database.close() } == nil)
        }
      }
      let left = engine.head.root
      for (index, number) in accepted.withLock({ $0 }).enumerated() {
        let scalar = left.child(try Key("\(index)")).scalar
        #expect(scalar == (number < 0 ? nil : .integer(Int64(number))))
      }
    }
  }

  /// Registers the number to be written at the end, and returns whether that was accepted.
  private static func register(_ number: Int, at ref: DatabaseReference, _ form: Int) -> Bool {
    let outcome = Shared<Bool?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    let received: @Sendable (Error?, DatabaseReference) -> Void = { error, _ in
      if let error { #expect((error as? DatabaseError)?.code == .closed) }
      outcome.withLock { $0 = error == nil }
      isDone.signal()
    }
    switch form {
    case 0: ref.onDisconnectSetValue(number, withCompletionBlock: received)
    case 1:
      ref.parent!.onDisconnectUpdateChildValues([ref.key!: number], withCompletionBlock: received)
    case 2:
      ref.onDisconnectSetValue(number, andPriority: nil, withCompletionBlock: received)
    default:
      Task {
        let error = await failure { try await ref.onDisconnectSetValue(number) }
        received(error, ref)
      }
    }
    isDone.wait()
    return outcome.value ?? false
  }
}

/// `body` on a thread of its own, which may wait.
private func onThread(_ body: @escaping @Sendable () -> Void) async {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread {
      body()
      continuation.resume()
    }
  }
}

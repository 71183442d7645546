/// A block of the application and the actor on which it is called; without an actor, the callback queue.
///
/// The blocks of the Firebase-shaped calls are `@Sendable` and take the isolation of the context in which
/// they are written: a block written in a method of an actor, or of the main actor, is called there.
struct Callback<Function: Sendable>: Sendable {
  let isolation: (any Actor)?
  /// Call it on the actor, if there is one.
  let call: Function
}

typealias EventFunction = @Sendable (DataSnapshot, String?) -> Void
typealias CancelFunction = @Sendable (any Error) -> Void
typealias ReadFunction = @Sendable ((any Error)?, DataSnapshot) -> Void
typealias CompletionFunction = @Sendable ((any Error)?, DatabaseReference) -> Void
typealias TransactionFunction = @Sendable ((any Error)?, Bool, DataSnapshot?) -> Void

// The blocks lose `@isolated(any)`, so that they can be called where their actor is known to run, without another
// suspension.

extension Callback where Function == EventFunction {
  init(_ block: @escaping @Sendable @isolated(any) (DataSnapshot, String?) -> Void) {
    isolation = block.isolation
    call = Reinterpretation.value(block, as: Function.self)
  }

  init(_ block: @escaping @Sendable @isolated(any) (DataSnapshot) -> Void) {
    isolation = block.isolation
    let plain = Reinterpretation.value(block, as: (@Sendable (DataSnapshot) -> Void).self)
    call = { snapshot, _ in plain(snapshot) }
  }
}

extension Callback where Function == CancelFunction {
  init(_ block: @escaping @Sendable @isolated(any) (any Error) -> Void) {
    isolation = block.isolation
    call = Reinterpretation.value(block, as: Function.self)
  }
}

extension Callback where Function == ReadFunction {
  init(_ block: @escaping @Sendable @isolated(any) ((any Error)?, DataSnapshot) -> Void) {
    isolation = block.isolation
    call = Reinterpretation.value(block, as: Function.self)
  }
}

extension Callback where Function == CompletionFunction {
  init(_ block: @escaping @Sendable @isolated(any) ((any Error)?, DatabaseReference) -> Void) {
    isolation = block.isolation
    call = Reinterpretation.value(block, as: Function.self)
  }

  init(_ block: @escaping @Sendable @isolated(any) ((any Error)?) -> Void) {
    isolation = block.isolation
    let plain = Reinterpretation.value(block, as: (@Sendable ((any Error)?) -> Void).self)
    call = { error, _ in plain(error) }
  }
}

extension Callback where Function == TransactionFunction {
  init(_ block: @escaping @Sendable @isolated(any) ((any Error)?, Bool, DataSnapshot?) -> Void) {
    isolation = block.isolation
    call = Reinterpretation.value(block, as: Function.self)
  }
}

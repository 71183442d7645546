/// A closure of the application, carried to the queue on which it runs.
///
/// The blocks of the Firebase-shaped calls are plain closures: they touch `self` and the views of the
/// app, and their samples must compile in Swift 5 and Swift 6 mode alike, which `@Sendable` would
/// forbid. Why the crossing is sound: this module never calls the closure at two places at once (one
/// drain at a time calls the blocks, each completion is called once, and one transaction runs at a
/// time), calls it on one queue alone, ``Database/callbackQueue`` or, for a transaction's block, that of
/// the transactions, and only hands the reference on in between. As with Firebase, what the closure
/// touches must belong to that queue.
struct PlainClosure<Function>: @unchecked Sendable {
  let call: Function

  init(_ call: Function) { self.call = call }
}

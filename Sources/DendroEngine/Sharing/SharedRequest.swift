package import DendroStorage
package import DendroTree

/// What a client has asked of an engine that does not lead, for the one that does, which knows what the client may do.
package struct SharedRequest: Sendable {
  /// What is to be written, if that is allowed. It has no change of the second root, and no origin.
  package let write: EncodedWrite
  /// What the handler has to know beside it; not empty.
  package let context: [UInt8]

  /// Whether it waits for a leader, and for an answer, as long as that takes.
  package let isPatient: Bool

  package init(_ write: EncodedWrite, context: [UInt8], isPatient: Bool = false) {
    precondition(!context.isEmpty, "a request is more than a write")
    self.write = write
    self.context = context
    self.isPatient = isPatient
  }
}

/// What has become of a request.
package enum SharedRequestOutcome: Sendable {
  /// It was written, as this write; nil: it has changed nothing.
  case made(LogSequenceNumber?)
  /// It was not written: what it was made from is not there any more.
  case stale
  /// The handler has decided, and says what.
  case answered([UInt8])
  case failed(EngineError)
}

/// Called once; with the data right behind the write, if that is known.
package typealias SharedRequestCompletion =
  @Sendable (SharedRequestOutcome, _ data: Node?) -> Void

/// Makes, in the engine that leads, what the clients of others ask for.
package protocol SharedRequestHandler: AnyObject, Sendable {
  /// Returns once the request is admitted to the engine, or will not be: then the next one of the same server comes. It may
  /// wait.
  ///
  /// - Parameters:
  ///   - request: what the client asks for.
  ///   - origin: under which the write is in the log, unless the request names another one; nil: under none.
  ///   - completion: called once it is known what has become of it.
  func make(
    _ request: SharedRequest, origin: WriteOrigin?, completion: @escaping SharedRequestCompletion)
}

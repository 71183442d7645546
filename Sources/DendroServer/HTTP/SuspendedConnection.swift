import CDendroMicroHTTPD
import Synchronization

/// A connection that libmicrohttpd leaves alone while its answer has nothing to be sent.
///
/// Unchecked: the calls of one connection are made under one lock, which its owner has.
final class SuspendedConnection: @unchecked Sendable {
  private let connection: OpaquePointer
  private let context: HTTPContext
  private var isSuspended = false

  init(_ connection: OpaquePointer, _ context: HTTPContext) {
    self.connection = connection
    self.context = context
  }

  /// Whether it is suspended, and its client has shut down writing or has broken the connection.
  var isLeft: Bool {
    isSuspended && HTTPConnection.hasLeft(dendro_connection_socket(connection))
  }

  /// To be called on the connection's thread. The server that stops waits for its end.
  func suspend() {
    if isSuspended { return }
    isSuspended = true
    context.pendingCount.wrappingAdd(1, ordering: .sequentiallyConsistent)
    MHD_suspend_connection(connection)
  }

  /// Makes libmicrohttpd look at the connection again, if it was suspended.
  func resume() {
    guard isSuspended else { return }
    isSuspended = false
    MHD_resume_connection(connection)
    context.pendingCount.wrappingSubtract(1, ordering: .sequentiallyConsistent)
  }
}

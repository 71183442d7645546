import CDendroPQ
import DendroPlatform

/// Ends the waits of several threads, those to come as well.
final class Interruption: Sendable {
  let descriptor: CInt

  init() throws(PostgresError) {
    descriptor = dendro_event_open()
    guard descriptor >= 0 else {
      throw .unreachable("no descriptor: \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }

  /// Any thread may call it.
  func set() { dendro_event_set(descriptor) }

  /// Lets threads wait again.
  ///
  /// - Returns: whether it was set.
  func clear() -> Bool { dendro_event_clear(descriptor) != 0 }

  /// Waits for a time, or until it is set.
  func wait(_ duration: Duration) {
    _ = dendro_pq_wait(-1, 0, 0, descriptor, duration.milliseconds)
  }
}

extension Duration {
  /// Rounded up, within what a system call takes.
  var milliseconds: CInt {
    let (seconds, attoseconds) = components
    if seconds >= 1_000_000 { return 1_000_000_000 }
    return CInt(
      max(0, seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
  }
}

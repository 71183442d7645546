import DendroPlatform

/// A fork of this process.
struct ForkedChild {
  private let pid: Int32

  /// - Parameter body: runs in the child, and returns its exit code. It must not take a lock that another
  ///   thread could hold: Swift hides `fork` because little is safe there.
  init(_ body: () -> Int32) throws {
    guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork") else {
      throw Violation("there is no fork")
    }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
    pid = fork()
    if pid == 0 { _exit(body()) }
    if pid < 0 { throw Violation("fork failed: \(errno)") }
  }

  /// Waits for its end.
  ///
  /// - Returns: the status as `waitpid` has it: 0 for exit code 0.
  func wait() -> Int32 {
    var status: Int32 = -1
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return status
  }

  func kill() {
    _ = DendroPlatform.kill(pid, SIGKILL)
  }
}

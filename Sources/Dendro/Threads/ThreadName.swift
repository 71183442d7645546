import DendroPlatform

/// The name of a thread while it works for the database, as a debugger and `top -H` show it.
///
/// At most 15 bytes: Linux refuses more.
enum ThreadName: String, CaseIterable {
  case callbacks = "dendro-events"
  case resuming = "dendro-resume"
  case freeing = "dendro-free"
  case reading = "dendro-read"
  case transactions = "dendro-transact"
  case opening = "dendro-open"
  case closing = "dendro-close"
  case backup = "dendro-backup"
  case archive = "dendro-archive"

  /// Runs `body` under this name, and gives the thread its name back: the threads of queues are also the
  /// application's.
  func during<R>(_ body: () -> R) -> R {
    guard let calls = Self.calls else { return body() }
    let byteCount = 64
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: byteCount) { before in
      let name = before.baseAddress.unsafelyUnwrapped
      let isKnown = calls.get(pthread_self(), name, byteCount) == 0
      calls.set(rawValue)
      defer { if isKnown { calls.set(name) } }
      return body()
    }
  }

  /// The system's calls, looked up by name: Glibc's headers hide them from Swift.
  private struct Calls {
    typealias Get =
      @convention(c) (pthread_t, UnsafeMutablePointer<CChar>, Int) -> CInt
    #if canImport(Darwin)
      typealias Set = @convention(c) (UnsafePointer<CChar>) -> CInt
    #else
      typealias Set = @convention(c) (pthread_t, UnsafePointer<CChar>) -> CInt
    #endif

    let get: Get
    private let setName: Set

    init?() {
      guard let get = dlsym(nil, "pthread_getname_np"), let set = dlsym(nil, "pthread_setname_np")
      else { return nil }
      // The C declarations of both functions have these types on every system.
      self.get = unsafeBitCast(get, to: Get.self)
      setName = unsafeBitCast(set, to: Set.self)
    }

    func set(_ name: UnsafePointer<CChar>) {
      #if canImport(Darwin)
        _ = setName(name)
      #else
        _ = setName(pthread_self(), name)
      #endif
    }
  }

  /// Nil if the program is linked without them: threads keep their names then.
  private static let calls = Calls()
}

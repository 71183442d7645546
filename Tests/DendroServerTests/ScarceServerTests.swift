#if os(Linux)
  import Dendro
  import DendroPlatform
  import DendroServer
  import Testing

  /// A process that has too little for a server: the start says so, and the process goes on.
  @Suite("serving: without descriptors or threads")
  struct ScarceServerTests {
    /// Takes all descriptors below a limit.
    private static func takeAll() -> [Int32] {
      var taken: [Int32] = []
      while case let descriptor = dup(STDERR_FILENO), descriptor >= 0 { taken.append(descriptor) }
      return taken
    }

    @Test("however many descriptors there are, a server is started or refused")
    func descriptors() async {
      await #expect(processExitsWith: .success) {
        let database = Database.inMemory()
        // What the process makes once and keeps is made now.
        await (try DatabaseServer.start(serving: database)).stop()
        let next = dup(STDERR_FILENO)
        close(next)
        let limit = rlimit(rlim_cur: rlim_t(next + 64), rlim_max: rlim_t(next + 64))
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #expect(withUnsafePointer(to: limit) { setrlimit(kind, $0) } == 0)
        var isStarted = false
        var freeCount = 0
        while !isStarted, freeCount < 60 {
          var taken = Self.takeAll()
          for descriptor in taken.suffix(freeCount) { close(descriptor) }
          taken.removeLast(freeCount)
          do {
            await (try DatabaseServer.start(serving: database)).stop()
            isStarted = true
          } catch {
            #expect(error is DatabaseServerError, "\(freeCount) descriptors: \(error)")
          }
          for descriptor in taken { close(descriptor) }
          freeCount += 1
        }
        #expect(isStarted && freeCount > 2)
        try await database.close()
      }
    }

    @Test("a server for which the system has no thread is refused, and started once it has one")
    func threads() async {
      await #expect(processExitsWith: .success) {
        typealias Call = @convention(c) (UnsafeMutablePointer<pthread_attr_t>) -> CInt
        // GNU's own, which is why they are not imported.
        let (get, set) = (
          unsafeBitCast(dlsym(nil, "pthread_getattr_default_np"), to: Call?.self),
          unsafeBitCast(dlsym(nil, "pthread_setattr_default_np"), to: Call?.self)
        )
        let database = Database.inMemory()
        await (try DatabaseServer.start(serving: database)).stop()
        // Every new thread would get a stack that is larger than the address space.
        var usual = pthread_attr_t()
        var unusual = pthread_attr_t()
        guard let get, let set, get(&usual) == 0, pthread_attr_init(&unusual) == 0,
          pthread_attr_setstacksize(&unusual, 1 << 47) == 0, set(&unusual) == 0
        else { exit(1) }
        var refusal: (any Error)?
        do {
          _ = try await DatabaseServer.start(serving: database)
        } catch {
          refusal = error
        }
        #expect(set(&usual) == 0)
        #expect(refusal is DatabaseServerError, "\(refusal as Any)")
        await (try DatabaseServer.start(serving: database)).stop()
        try await database.close()
      }
    }
  }
#endif

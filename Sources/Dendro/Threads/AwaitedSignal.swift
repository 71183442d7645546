import DendroPlatform
import DendroTree
import Dispatch
import Synchronization

/// A signal that does nothing to the process but call a block, as long as this lives.
///
/// Dispatch's own sources see no signal on Linux that the main thread does not block. So a handler writes the number of the
/// signal into a pipe, which is all that a handler may do, and a source of Dispatch reads it.
final class AwaitedSignal: Sendable {
  private let number: Int32
  private let key: Int

  /// - Parameter body: called for each signal, on a queue of its own.
  /// - Throws: `DatabaseError` if the signal cannot be caught, or there is no descriptor for the pipe.
  init(_ number: Int32, _ body: @escaping @Sendable () -> Void) throws(DatabaseError) {
    self.number = number
    key = try Self.add(body, for: number)
  }

  deinit { Self.remove(key, for: number) }

  // MARK: All of the process

  private struct Waiting {
    /// What the process did before.
    var before: sigaction
    var blocks: [Int: @Sendable () -> Void] = [:]
  }

  private struct State {
    /// By the numbers of the signals.
    var waiting: [Int32: Waiting] = [:]
    var keyCount = 0
    var source: (any DispatchSourceRead)?
  }

  private static let state = Mutex(State())
  private static let queue = DispatchQueue(label: "dendro.signals")
  /// Where the handler writes.
  private static let end = Atomic<Int32>(-1)
  /// Which process has made the pipe.
  private static let process = Atomic<Int32>(-1)

  private static func add(
    _ body: @escaping @Sendable () -> Void, for number: Int32
  ) throws(DatabaseError) -> Int {
    let result = state.withLock { state -> Result<Int, DatabaseError> in
      if state.source == nil {
        switch makePipe() {
        case .success(let source): state.source = source
        case .failure(let error): return .failure(error)
        }
      }
      if state.waiting[number] == nil {
        var before = sigaction()
        var action = sigaction(calling: { number in
          // A fork has the pipe of its parent.
          guard getpid() == AwaitedSignal.process.load(ordering: .relaxed) else {
            signal(number, SIG_DFL)
            raise(number)
            return
          }
          let failure = errno
          var byte = UInt8(truncatingIfNeeded: number)
          _ = write(AwaitedSignal.end.load(ordering: .relaxed), &byte, 1)
          errno = failure
        })
        guard sigaction(number, &action, &before) == 0 else {
          return .failure(
            DatabaseError(
              ValidationError(
                .invalidArgument, "\(number) is the number of no signal that can be caught")))
        }
        state.waiting[number] = Waiting(before: before)
      }
      state.keyCount += 1
      state.waiting[number]?.blocks[state.keyCount] = body
      return .success(state.keyCount)
    }
    return try result.get()
  }

  private static func remove(_ key: Int, for number: Int32) {
    state.withLock { state in
      state.waiting[number]?.blocks[key] = nil
      guard var waiting = state.waiting[number], waiting.blocks.isEmpty else { return }
      sigaction(number, &waiting.before, nil)
      state.waiting[number] = nil
    }
  }

  /// Makes the pipe, which stays until the end of the process.
  private static func makePipe() -> Result<any DispatchSourceRead, DatabaseError> {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      return .failure(
        DatabaseError(
          .inputOutput, "InputOutput", "no pipe for signals could be made (errno \(errno))"))
    }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    process.store(getpid(), ordering: .relaxed)
    end.store(ends[1], ordering: .relaxed)
    let input = ends[0]
    let source = DispatchSource.makeReadSource(fileDescriptor: input, queue: queue)
    source.setEventHandler {
      var bytes = [UInt8](repeating: 0, count: 64)
      let count = read(input, &bytes, bytes.count)
      guard count > 0 else { return }
      let blocks = state.withLock { state in
        Set(bytes[..<count]).flatMap { state.waiting[Int32($0)]?.blocks.values.map { $0 } ?? [] }
      }
      for block in blocks { block() }
    }
    source.activate()
    return .success(source)
  }
}

extension sigaction {
  fileprivate init(calling handler: @escaping @convention(c) (Int32) -> Void) {
    self.init()
    sa_flags = SA_RESTART
    #if canImport(Darwin)
      __sigaction_u.__sa_handler = handler
    #elseif canImport(Musl)
      __sa_handler.sa_handler = handler
    #else
      __sigaction_handler.sa_handler = handler
    #endif
  }
}

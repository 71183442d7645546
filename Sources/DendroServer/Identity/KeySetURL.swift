import Dispatch
import Synchronization

/// The keys that a URL has. They are fetched again when they are no longer fresh, and if a token names another.
final class KeySetURL: KeySource {
  private let address: WebAddress
  private let report: @Sendable (String) -> Void
  private let timeout: Duration
  private let queue = DispatchQueue(label: "dendro-keys")
  private let isEnded = Atomic<Bool>(false)
  private let state = Mutex(State())

  private struct State {
    var keys: KeySet?
    var isFetching = false
    /// In seconds since 1970.
    var lastFetch = Int64.min
    var due = Int64.min
  }

  /// Seconds for which keys are used whose age no answer limits.
  private static let defaultAge: Int64 = 3600
  private static let ageLimits: ClosedRange<Int64> = 60...86_400
  /// Seconds between two fetches if one fails, or a token names a key that is not there.
  private static let pause: Int64 = 60

  /// Fetches the keys. If that fails, it is reported and done again later.
  init(
    _ address: WebAddress, at now: Int64, timeout: Duration,
    report: @escaping @Sendable (String) -> Void
  ) throws(DatabaseServerError) {
    guard WebDocument.canFetch else {
      throw DatabaseServerError(
        "to fetch the keys of \(address) libcurl is needed (Debian: libcurl4)")
    }
    self.address = address
    self.timeout = timeout
    self.report = report
    fetch(at: now)
  }

  var keys: KeySet? { state.withLock { $0.keys } }

  func miss(at now: Int64) {
    refresh(at: now) { state in now >= state.lastFetch + Self.pause }
  }

  func refresh(at now: Int64) {
    refresh(at: now) { state in now >= state.due }
  }

  func end() {
    isEnded.store(true, ordering: .relaxed)
    // A library must not be at work while the process ends.
    queue.sync {}
  }

  private func refresh(at now: Int64, where isDue: (State) -> Bool) {
    let begins = state.withLock { state in
      // A clock that was set back makes no key older.
      guard !state.isFetching, isDue(state) || now < state.lastFetch else { return false }
      state.isFetching = true
      return true
    }
    if begins { queue.async { [self] in fetch(at: now) } }
  }

  private func fetch(at now: Int64) {
    if isEnded.load(ordering: .relaxed) { return }
    var found: (keys: KeySet, age: Int64)?
    do throws(WebDocument.Failure) {
      let document = try WebDocument(
        fetching: address, byteLimit: KeySet.byteLimit, timeout: timeout
      ) { [self] in isEnded.load(ordering: .relaxed) }
      guard let keys = KeySet(document.bytes) else {
        throw WebDocument.Failure("it has no public RSA key of at least 2048 bits")
      }
      let age = document.maxAge ?? Self.defaultAge
      found = (keys, min(max(age, Self.ageLimits.lowerBound), Self.ageLimits.upperBound))
    } catch {
      if isEnded.load(ordering: .relaxed) { return }
      let rest = keys == nil ? "no token is believed yet" : "those of before stay"
      report("the keys of \(address) cannot be fetched: \(error.sentence); \(rest)")
    }
    state.withLock { state in
      if let found { state.keys = found.keys }
      state.isFetching = false
      state.lastFetch = now
      state.due = now + (found?.age ?? Self.pause)
    }
  }
}

import Synchronization

/// Makes the remote of a database when it is first asked for.
final class RemoteHolder: Sendable {
  typealias Making = @Sendable (any RemoteObserver) -> any Remote

  private let made = AtomicLazyReference<Made>()
  private let making: Mutex<Making>
  private let link: RemoteLink
  private let hub: EventHub

  private final class Made: Sendable {
    let remote: any Remote

    init(_ remote: any Remote) { self.remote = remote }
  }

  init(_ link: RemoteLink, _ hub: EventHub, _ make: @escaping Making) {
    self.link = link
    self.hub = hub
    making = Mutex(make)
  }

  var remote: any Remote {
    if let made = made.load() { return made.remote }
    return making.withLock { make in
      if let made = made.load() { return made.remote }
      let remote = make(link)
      hub.state.withLock { state in
        state.endUses = { [weak remote] uses in remote?.end(uses) }
      }
      return made.storeIfNil(Made(remote)).remote
    }
  }

  /// The remote, if it was asked for.
  var existing: (any Remote)? { made.load()?.remote }

  /// Has it be made otherwise, if it was not asked for.
  func change(_ make: @escaping Making) { making.withLock { $0 = make } }
}

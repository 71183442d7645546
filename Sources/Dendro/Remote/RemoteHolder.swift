import DendroEngine
import Synchronization

/// Makes the remote of a database when it is first asked for.
final class RemoteHolder: Sendable {
  private let made = AtomicLazyReference<Made>()
  private let state: Mutex<State>
  private let link: RemoteLink
  private let hub: EventHub
  private let settings: DatabaseSettings

  private struct State {
    var setup: RemoteSetup
    var make: Remotes.Factory
  }

  private final class Made: Sendable {
    let remote: any Remote

    init(_ remote: any Remote) { self.remote = remote }
  }

  init(
    _ link: RemoteLink, _ hub: EventHub, _ settings: DatabaseSettings, _ setup: RemoteSetup,
    _ make: @escaping Remotes.Factory
  ) {
    self.link = link
    self.hub = hub
    self.settings = settings
    state = Mutex(State(setup: setup, make: make))
  }

  var remote: any Remote {
    if let made = made.load() { return made.remote }
    return state.withLock { state in
      if let made = made.load() { return made.remote }
      state.setup.cacheByteCount = { [settings] in Int(settings.cacheByteCount) }
      let remote = state.make(state.setup, link)
      hub.state.withLock { state in
        state.endUses = { [weak remote] uses in remote?.end(uses) }
      }
      return made.storeIfNil(Made(remote)).remote
    }
  }

  /// The remote, if it was asked for.
  var existing: (any Remote)? { made.load()?.remote }

  var setup: RemoteSetup { state.withLock { $0.setup } }

  /// What keeps the data in a directory; nil in memory.
  var files: Engine? { setup.files }

  /// Has it be made with this, if it was not asked for.
  func change(_ setup: RemoteSetup) { state.withLock { $0.setup = setup } }

  /// Has it be made otherwise, if it was not asked for.
  func change(_ setup: RemoteSetup, _ make: @escaping Remotes.Factory) {
    state.withLock { $0 = State(setup: setup, make: make) }
  }
}

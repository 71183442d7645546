public import Dendro
import DendroPlatform
import Synchronization

/// What connects a process with the other servers of one cluster, for all databases that it opens with it.
///
/// Over a line the leader sends followers each batch once PostgreSQL has it, and takes what they write. Both reach a server
/// without a line through PostgreSQL's tables, which takes about twice as long.
///
/// Each line is TLS 1.3 with a key that the process that is called draws when it starts. Only those know it who read the schema
/// `dendro` in PostgreSQL.
///
/// Keep one for the process, and give it to each database that is opened:
///
/// ```swift
/// let lines = try ServerLines(listeningAt: "10.0.0.5", port: 9100)
/// let database = try await Database.open(
///   at: "data", replicatedBy: "postgresql://dendro@db.example/dendro", namespace: "shop",
///   lines: lines)
/// ```
///
/// It listens as long as it is referenced, also by a database, and stops soon after.
public final class ServerLines: Sendable {
  /// Where other servers open lines to this process; nil if it takes none.
  let address: LineAddress?
  private let loop: LineLoop
  private let state = Mutex(State())

  /// Those that wait to say who they are, at most.
  private static let unknownCountMax = 64

  private struct State {
    /// By their namespaces.
    var leaders: [String: any LineLeader] = [:]
    /// Lines whose ends have not said who they are.
    var unknownCount = 0
  }

  /// For those that are never called: they call others.
  static let calling: ServerLines? = try? ServerLines(address: nil, LineLoop())

  /// Listens for other servers.
  ///
  /// - Parameters:
  ///   - host: a name or an address of this machine, or one that stands for all of them: `0.0.0.0`, `::`.
  ///   - port: 0 lets the system choose one.
  ///   - advertisedHost: by which others reach this machine; nil: by `host`, which is then none that stands for all.
  /// - Throws: `DatabaseError.Code.inputOutput` if the address cannot be listened at, `DatabaseError.Code.invalidArgument` if
  ///   it stands for all addresses and `advertisedHost` is nil.
  public convenience init(
    listeningAt host: String, port: UInt16 = 0, advertisedHost: String? = nil
  ) throws(DatabaseError) {
    if advertisedHost == nil, ["0.0.0.0", "::", "*", ""].contains(host) {
      throw DatabaseError(
        .invalidArgument, "InvalidAddress",
        "other servers cannot reach this one at \"\(host)\": it needs advertisedHost")
    }
    let loop: LineLoop
    do throws(PostgresError) {
      loop = try LineLoop()
    } catch {
      throw DatabaseError(.inputOutput, "InputOutput", "\(error)")
    }
    let descriptor: Int32
    do throws(LineSocket.Failure) {
      descriptor = try LineSocket.listen(host, port: port)
    } catch {
      throw DatabaseError(.inputOutput, "InputOutput", "\(error)")
    }
    let listener = LineListener(descriptor)
    self.init(
      address: LineAddress(host: advertisedHost ?? host, port: LineSocket.port(of: descriptor)),
      loop)
    listener.taken.withLock { taken in
      taken = { [weak self] descriptor in
        if let self { accept(descriptor) } else { close(descriptor) }
      }
    }
    loop.add(listener)
  }

  private init(address: LineAddress?, _ loop: LineLoop) {
    self.address = address
    self.loop = loop
  }

  deinit { loop.stop() }

  // MARK: Those who call

  /// Has the leader of a namespace take lines.
  func add(_ leader: any LineLeader, of namespace: String) {
    state.withLock { $0.leaders[namespace] = leader }
  }

  /// Has it take no more.
  func remove(_ leader: any LineLeader, of namespace: String) {
    state.withLock { state in
      if state.leaders[namespace] === leader { state.leaders[namespace] = nil }
    }
  }

  private func accept(_ descriptor: Int32) {
    let hasRoom = state.withLock { state in
      guard state.unknownCount < Self.unknownCountMax else { return false }
      state.unknownCount += 1
      return true
    }
    guard hasRoom, let key = address?.key else {
      close(descriptor)
      return
    }
    if let line = Line(descriptor, key: key, accepts: true, loop, Door(self)) {
      loop.add(line)
    } else {
      forgetUnknown()
    }
  }

  private func forgetUnknown() { state.withLock { $0.unknownCount -= 1 } }

  /// Lets those in who say whom they want.
  private final class Door: Line.Handler {
    private weak let lines: ServerLines?

    init(_ lines: ServerLines) { self.lines = lines }

    func take(_ message: LineMessage, from line: Line) -> Bool {
      guard let lines,
        case .hello(LineMessage.version, let namespace, let client, let epoch) = message,
        let leader = lines.state.withLock({ $0.leaders[namespace] }),
        leader.welcome(line, client: client, epoch: epoch)
      else { return false }
      // It hears of the end from now on.
      lines.forgetUnknown()
      return true
    }

    func lineEnded(_ line: Line) { lines?.forgetUnknown() }
  }

  // MARK: Calling others

  /// Opens a line, which may wait for some seconds.
  ///
  /// - Parameter hello: the first message.
  /// - Returns: nil if there is no memory for it.
  func call(
    _ address: LineAddress, hello: LineMessage, _ handler: any Line.Handler
  ) throws(LineSocket.Failure) -> Line? {
    let descriptor = try LineSocket.connect(
      address.host, port: address.port, patience: Self.callPatience)
    guard let line = Line(descriptor, key: address.key, accepts: false, loop, handler) else {
      return nil
    }
    line.send(hello)
    loop.add(line)
    return line
  }

  private static let callPatience = Duration.seconds(3)
}

/// Who leads a namespace, as those see it who call.
protocol LineLeader: AnyObject, Sendable {
  /// Takes a line of a server that follows, and its messages (`Line.hand(to:)`). Called on the loop's thread.
  ///
  /// - Parameters:
  ///   - client: names the server's opening.
  ///   - epoch: whose leader it wants to hear.
  /// - Returns: false if this server does not lead in that epoch.
  func welcome(_ line: Line, client: [UInt8], epoch: Epoch) -> Bool
}

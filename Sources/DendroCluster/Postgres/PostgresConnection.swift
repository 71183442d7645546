import CDendroPQ

/// A connection to PostgreSQL, for one thread at a time. Its calls wait on that thread.
///
/// libpq works without blocking; the waits are here, so that each ends with its time, or with the interruption.
final class PostgresConnection {
  private let pq: UnsafePointer<dendro_pq>
  private let connection: OpaquePointer
  private let interruption: Interruption
  private let warning = UnsafeMutablePointer<dendro_pq_warning>.allocate(capacity: 1)
  /// The names of the statements that are prepared.
  private var names: [String: String] = [:]
  /// False once an outcome was not known: what the connection says next could belong to another statement.
  private(set) var isUsable = false
  private let address: PostgresAddress
  /// Which host of the address it leads to.
  let host: Int
  private let hosts: HostChoice

  /// What the address may set otherwise. A line without an answer is found dead after ten seconds.
  private static let defaults = [
    // A warning says that a commit may not be replicated.
    ("options", "-c client_min_messages=warning"), ("target_session_attrs", "read-write"),
    ("fallback_application_name", "dendro"),
    ("keepalives", "1"), ("keepalives_idle", "5"), ("keepalives_interval", "2"),
    ("keepalives_count", "2"), ("tcp_user_timeout", "10000"),
  ]

  /// Connects.
  ///
  /// - Parameters:
  ///   - address: a `postgresql://` URL, or a line of keys and values; what it lacks is taken from the environment as
  ///     libpq does.
  ///   - timeout: for all of it.
  ///   - hosts: which host is tried first.
  init(
    _ address: String, timeout: Duration, interruption: Interruption,
    hosts: HostChoice = HostChoice()
  ) throws(PostgresError) {
    self.interruption = interruption
    self.hosts = hosts
    warning.initialize(to: dendro_pq_warning())
    do throws(PostgresError) {
      pq = try PostgresLibrary.functions()
      warning.pointee.pq = pq
      self.address = try PostgresAddress(address)
      (connection, host) = try Self.connect(
        self.address, from: hosts.first, warning, timeout, interruption)
    } catch {
      warning.deallocate()
      throw error
    }
    _ = pq.pointee.PQsetnonblocking(connection, 1)
    isUsable = true
  }

  deinit {
    pq.pointee.PQfinish(connection)
    warning.deallocate()
  }

  /// Connects to the first host that can be used.
  ///
  /// libpq would do that too, but it gives all of the time to a host that takes the connection and says nothing.
  private static func connect(
    _ address: PostgresAddress, from first: Int,
    _ warning: UnsafeMutablePointer<dendro_pq_warning>, _ timeout: Duration,
    _ interruption: Interruption
  ) throws(PostgresError) -> (OpaquePointer, host: Int) {
    let deadline = ContinuousClock.now + timeout
    let count = address.hosts.count
    var failures: [String] = []
    for index in 0..<count {
      let host = (first + index) % count
      let share = max(deadline - .now, .zero) / (count - failures.count)
      do throws(PostgresError) {
        let connection = try connect(address, address.hosts[host], warning, share, interruption)
        return (connection, host)
      } catch {
        guard case .unreachable(let reason) = error else { throw error }
        failures.append(reason)
      }
    }
    throw .unreachable(failures.joined(separator: "; "))
  }

  private static func connect(
    _ address: PostgresAddress, _ host: [(key: String, value: String)],
    _ warning: UnsafeMutablePointer<dendro_pq_warning>, _ timeout: Duration,
    _ interruption: Interruption
  ) throws(PostgresError) -> OpaquePointer {
    // Later ones of the same name count. All texts are read as UTF-8, whatever the address says.
    let pq = warning.pointee.pq.unsafelyUnwrapped
    let options =
      defaults + [("dbname", address.text)] + host + [("client_encoding", "UTF8")]
    guard
      let connection = withCStrings(
        options.map(\.0),
        { keys in withCStrings(options.map(\.1)) { pq.pointee.PQconnectStartParams(keys, $0, 1) } })
    else { throw .unreachable("no memory") }
    dendro_pq_receive_warnings(connection, warning)
    do throws(PostgresError) {
      try finish(pq, connection, address, .now + timeout, timeout, interruption)
      return connection
    } catch {
      pq.pointee.PQfinish(connection)
      throw error
    }
  }

  private static func finish(
    _ pq: UnsafePointer<dendro_pq>, _ connection: OpaquePointer, _ address: PostgresAddress,
    _ deadline: ContinuousClock.Instant,
    _ timeout: Duration, _ interruption: Interruption
  ) throws(PostgresError) {
    var state = PGRES_POLLING_WRITING
    while state != PGRES_POLLING_OK {
      if state == PGRES_POLLING_FAILED || pq.pointee.PQstatus(connection) == CONNECTION_BAD {
        throw .unreachable(address.redacted(message(pq, connection)))
      }
      do throws(PostgresError) {
        try wait(
          pq, connection, reads: state == PGRES_POLLING_READING,
          writes: state == PGRES_POLLING_WRITING, deadline, timeout, interruption)
      } catch {
        // Nothing was sent that could have been done.
        if case .interrupted = error { throw error }
        let tenths = (timeout / .milliseconds(100)).rounded()
        throw .unreachable("no answer within \(tenths / 10) seconds")
      }
      state = pq.pointee.PQconnectPoll(connection)
    }
  }

  /// What libpq says of the last failure, in one line.
  private var message: String { Self.message(pq, connection) }

  private static func message(
    _ pq: UnsafePointer<dendro_pq>, _ connection: OpaquePointer
  ) -> String {
    let text = pq.pointee.PQerrorMessage(connection).map { String(cString: $0) } ?? ""
    return text.split(whereSeparator: \.isNewline)
      .map { $0.drop { $0.isWhitespace } }.joined(separator: "; ")
  }

  /// The next connection is made to this host, if it can be.
  func preferHost() { hosts.prefer(host) }

  /// The next connection is made to another host, if there is one that can be used.
  func passOverHost() { hosts.passOver(host) }

  /// How many hosts the address has, at least one.
  var hostCount: Int { address.hosts.count }

  /// Connects to the next host that can be used, which may be the same.
  func toNextHost(timeout: Duration) throws(PostgresError) -> PostgresConnection {
    passOverHost()
    return try PostgresConnection(
      address.text, timeout: timeout, interruption: interruption, hosts: hosts)
  }

  // MARK: Statements

  /// Executes a statement.
  ///
  /// - Parameters:
  ///   - sql: prepared at the first time; its parameters have the same types each time.
  ///   - timeout: for the answer.
  func execute(
    _ sql: String, _ parameters: [PostgresValue] = [], timeout: Duration
  ) throws(PostgresError) -> PostgresRows {
    let deadline = ContinuousClock.now + timeout
    let name = try prepared(sql, parameters, deadline, timeout)
    let values = parameters.map(\.encoded)
    return try answer(deadline, timeout) {
      let lengths = values.map { CInt($0.count) }
      let formats = values.map { _ in CInt(1) }
      return withPointers(values) {
        pq.pointee.PQsendQueryPrepared(
          connection, name, CInt(values.count), $0, lengths, formats, 1)
      }
    }
  }

  /// Executes statements without parameters.
  func executeScript(_ sql: String, timeout: Duration) throws(PostgresError) {
    _ = try answer(ContinuousClock.now + timeout, timeout) {
      pq.pointee.PQsendQuery(connection, sql)
    }
  }

  private func prepared(
    _ sql: String, _ parameters: [PostgresValue], _ deadline: ContinuousClock.Instant,
    _ timeout: Duration
  ) throws(PostgresError) -> String {
    if let name = names[sql] { return name }
    let name = "dendro\(names.count)"
    _ = try answer(deadline, timeout) {
      pq.pointee.PQsendPrepare(
        connection, name, sql, CInt(parameters.count), parameters.map(\.type))
    }
    names[sql] = name
    return name
  }

  /// Sends a request and waits for the answer.
  private func answer(
    _ deadline: ContinuousClock.Instant, _ timeout: Duration, _ send: () -> CInt
  ) throws(PostgresError) -> PostgresRows {
    guard isUsable else { throw .lost("it is not used any more") }
    warning.pointee.text.0 = 0
    // Until the answer is whole.
    isUsable = false
    guard send() == 1 else { throw .lost(message) }
    try flush(deadline, timeout)
    var last: OpaquePointer?
    while let result = try next(deadline, timeout) {
      // Of several statements the first that failed counts.
      if let last, pq.pointee.PQresultStatus(last) == PGRES_FATAL_ERROR {
        pq.pointee.PQclear(result)
      } else {
        pq.pointee.PQclear(last)
        last = result
      }
    }
    guard let last else { throw .lost(message) }
    return try rows(last)
  }

  private func rows(_ result: OpaquePointer) throws(PostgresError) -> PostgresRows {
    let rows = PostgresRows(result, pq)
    switch pq.pointee.PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: break
    default:
      let state = field(result, Field.state) ?? ""
      let text = field(result, Field.message) ?? message
      // The connection is ended, or the engine cannot tell whether it has committed.
      let isLost =
        field(result, Field.severity) != "ERROR" || state.hasPrefix("08") || state == "40003"
        || state.hasPrefix("57P") || pq.pointee.PQstatus(connection) == CONNECTION_BAD
      if isLost { throw .lost(text) }
      isUsable = true
      throw .refused(state: state, message: text)
    }
    let text = withUnsafePointer(to: &warning.pointee.text) {
      $0.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: $0.pointee)) {
        String(cString: $0)
      }
    }
    guard text.isEmpty else { throw .unreplicated(text) }
    isUsable = true
    return rows
  }

  /// The codes of an error's fields, which are characters in libpq's header.
  private enum Field {
    static let severity = CInt(UInt8(ascii: "V"))
    static let state = CInt(UInt8(ascii: "C"))
    static let message = CInt(UInt8(ascii: "M"))
  }

  private func field(_ result: OpaquePointer, _ code: CInt) -> String? {
    pq.pointee.PQresultErrorField(result, code).map { String(cString: $0) }
  }

  // MARK: Waiting

  private func flush(
    _ deadline: ContinuousClock.Instant, _ timeout: Duration
  ) throws(PostgresError) {
    while true {
      let rest = pq.pointee.PQflush(connection)
      if rest == 0 { return }
      if rest < 0 { throw .lost(message) }
      // A server that has much to say first does not take more.
      try wait(reads: true, writes: true, deadline, timeout)
      guard pq.pointee.PQconsumeInput(connection) == 1 else { throw .lost(message) }
    }
  }

  private func next(
    _ deadline: ContinuousClock.Instant, _ timeout: Duration
  ) throws(PostgresError) -> OpaquePointer? {
    while pq.pointee.PQisBusy(connection) == 1 {
      try wait(reads: true, writes: false, deadline, timeout)
      guard pq.pointee.PQconsumeInput(connection) == 1 else { throw .lost(message) }
    }
    return pq.pointee.PQgetResult(connection)
  }

  private func wait(
    reads: Bool, writes: Bool, _ deadline: ContinuousClock.Instant, _ timeout: Duration
  ) throws(PostgresError) {
    try Self.wait(
      pq, connection, reads: reads, writes: writes, deadline, timeout, interruption)
  }

  private static func wait(
    _ pq: UnsafePointer<dendro_pq>, _ connection: OpaquePointer, reads: Bool, writes: Bool,
    _ deadline: ContinuousClock.Instant,
    _ timeout: Duration, _ interruption: Interruption
  ) throws(PostgresError) {
    while true {
      let found = dendro_pq_wait(
        pq.pointee.PQsocket(connection), reads ? 1 : 0, writes ? 1 : 0, interruption.descriptor,
        max(deadline - .now, .zero).milliseconds)
      switch found {
      case 1: return
      case 2: throw .interrupted
      case 0: throw .timedOut(timeout)
      default: continue
      }
    }
  }
}

/// Calls `body` with the strings, and nil behind them.
private func withCStrings<R>(
  _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> R
) -> R {
  withPointers(strings.map { Array($0.utf8CString) }, isTerminated: true, body)
}

/// Calls `body` with pointers to the values, in their order.
private func withPointers<Element, R>(
  _ values: [[Element]], isTerminated: Bool = false,
  _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> R
) -> R {
  var pointers: [UnsafePointer<CChar>?] = []
  func next(_ index: Int) -> R {
    guard index < values.count else {
      if isTerminated || values.isEmpty { pointers.append(nil) }
      return pointers.withUnsafeBufferPointer { body($0.baseAddress.unsafelyUnwrapped) }
    }
    return values[index].withUnsafeBytes { bytes in
      // No value is nil: that would be NULL.
      pointers.append(
        bytes.baseAddress?.assumingMemoryBound(to: CChar.self) ?? UnsafePointer(emptyValue))
      return next(index + 1)
    }
  }
  return next(0)
}

/// Where the bytes of an empty value are.
nonisolated(unsafe) private let emptyValue: UnsafeMutablePointer<CChar> = {
  let place = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
  place.initialize(to: 0)
  return place
}()

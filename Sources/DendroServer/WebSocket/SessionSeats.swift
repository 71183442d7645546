/// Who has the sessions of a server, and who has to leave so that another one can come.
///
/// Signing in is possible only within a session. So where all sessions are taken, a few clients more are let in as guests, who
/// may do nothing but that.
///
/// | a newcomer, while | gets the place of |
/// | --- | --- |
/// | there are sessions left, also for its address | nobody |
/// | its address has as many as it may | a session of that address that has asked for nothing yet |
/// | all are taken | one that has asked for nothing yet, of an address with at least as many sessions |
/// | | or a stranger, of an address that has at least two more |
/// | none of these is found | nobody, as a guest, or another guest; refused if clients cannot sign in |
///
/// A guest who signs in gets the place of any session whose client has not. Among several, the one that leaves is of the
/// address with the most sessions, and the oldest of these.
struct SessionSeats: Sendable {
  enum Standing: Int, CaseIterable, Sendable {
    /// It has asked for nothing yet.
    case new
    /// It has no session of its own, and may only sign in.
    case guest
    /// Its client has not signed in.
    case stranger
    case user
  }

  /// What became of a client that wants a session.
  enum Decision: Equatable, Sendable {
    case seated
    /// It takes the place of another session, which has to leave.
    case replaces(String)
    case refused
  }

  struct Limits: Sendable {
    /// Of all sessions, guests apart.
    let count: Int
    /// Of the sessions of one address.
    let addressCount: Int
    /// Of those of this machine's own addresses.
    let loopbackCount: Int
    let guestCount: Int
  }

  private struct Seat: Sendable {
    let address: ClientAddress
    var standing: Standing
    var since: ContinuousClock.Instant
    /// Its index among the ids with its standing.
    var place: Int
  }

  private let limits: Limits
  private var seats: [String: Seat] = [:]
  private var ids: [[String]] = Standing.allCases.map { _ in [] }
  private var counts: [ClientAddress: Int] = [:]
  /// So many sessions are looked at to find the one that leaves.
  private static let sampleCount = 16

  init(_ limits: Limits) { self.limits = limits }

  /// How many sessions there are, guests included.
  var count: Int { seats.count }

  func standing(of id: String) -> Standing? { seats[id]?.standing }

  private func count(of address: ClientAddress) -> Int { counts[address] ?? 0 }

  private func limit(of address: ClientAddress) -> Int {
    address.isLoopback ? limits.loopbackCount : limits.addressCount
  }

  private var isFull: Bool { seats.count - ids[Standing.guest.rawValue].count >= limits.count }

  // MARK: Coming and leaving

  /// What would become of a newcomer, with its standing.
  ///
  /// - Parameter chooses: whether of several sessions that may leave the right one is looked for.
  private func decision(_ address: ClientAddress, chooses: Bool = true) -> (Decision, Standing) {
    let own = count(of: address)
    if own >= limit(of: address) {
      if let id = candidate(.new, chooses, where: { $0 == address }) {
        return (.replaces(id), .new)
      }
    } else if !isFull {
      return (.seated, .new)
    } else if let id = candidate(.new, chooses, where: { count(of: $0) >= own })
      ?? candidate(.stranger, chooses, where: { count(of: $0) > own + 1 })
    {
      return (.replaces(id), .new)
    }
    if ids[Standing.guest.rawValue].count < limits.guestCount { return (.seated, .guest) }
    let other = candidate(.guest, chooses, where: { count(of: $0) >= own })
    return (other.map { .replaces($0) } ?? .refused, .guest)
  }

  /// Whether a newcomer would be refused now.
  func refuses(_ address: ClientAddress) -> Bool {
    decision(address, chooses: false).0 == .refused
  }

  /// Gives a newcomer a session, if there is one for it.
  mutating func admit(
    _ id: String, _ address: ClientAddress, at now: ContinuousClock.Instant
  ) -> Decision {
    let (decision, standing) = decision(address)
    if decision == .refused { return decision }
    if case .replaces(let other) = decision { leave(other) }
    ids[standing.rawValue].append(id)
    seats[id] = Seat(
      address: address, standing: standing, since: now, place: ids[standing.rawValue].count - 1)
    counts[address, default: 0] += 1
    return decision
  }

  mutating func leave(_ id: String) {
    guard let seat = seats.removeValue(forKey: id) else { return }
    removeID(seat)
    let left = count(of: seat.address) - 1
    counts[seat.address] = left > 0 ? left : nil
  }

  private mutating func removeID(_ seat: Seat) {
    let standing = seat.standing.rawValue
    let last = ids[standing].removeLast()
    guard seat.place < ids[standing].count else { return }
    ids[standing][seat.place] = last
    seats[last]?.place = seat.place
  }

  // MARK: Standing

  /// Notes who the client of a session is.
  ///
  /// - Returns: `refused` for a guest who asks for something without having signed in, or if all sessions are those of users.
  mutating func change(
    _ id: String, to standing: Standing, at now: ContinuousClock.Instant
  ) -> Decision {
    guard let seat = seats[id] else { return .refused }
    if seat.standing == standing { return .seated }
    guard seat.standing == .guest else {
      move(id, to: standing, at: now)
      return .seated
    }
    guard standing == .user else { return .refused }
    let isAddressFull = count(of: seat.address) > limit(of: seat.address)
    if !isFull, !isAddressFull {
      move(id, to: .user, at: now)
      return .seated
    }
    let isEligible = { $0 == seat.address || !isAddressFull }
    guard
      let other = candidate(.new, where: isEligible) ?? candidate(.stranger, where: isEligible)
    else { return .refused }
    leave(other)
    move(id, to: .user, at: now)
    return .replaces(other)
  }

  private mutating func move(
    _ id: String, to standing: Standing, at now: ContinuousClock.Instant
  ) {
    guard var seat = seats[id] else { return }
    removeID(seat)
    seat.standing = standing
    seat.since = now
    seat.place = ids[standing.rawValue].count
    ids[standing.rawValue].append(id)
    seats[id] = seat
  }

  /// The sessions that have had a standing since a moment or before.
  func all(_ standing: Standing, since moment: ContinuousClock.Instant) -> [String] {
    ids[standing.rawValue].filter { seats[$0].map { $0.since <= moment } ?? false }
  }

  /// The session that leaves first; of many, only some are looked at, so that it is found quickly while newcomers come in
  /// thousands.
  ///
  /// - Parameter chooses: false if any one that may leave will do.
  private func candidate(
    _ standing: Standing, _ chooses: Bool = true, where isEligible: (ClientAddress) -> Bool
  ) -> String? {
    let ids = ids[standing.rawValue]
    var best: (id: String, count: Int, since: ContinuousClock.Instant)?
    let sampleCount = min(ids.count, Self.sampleCount)
    let start = ids.count > sampleCount ? Int.random(in: 0..<ids.count) : 0
    for number in 0..<sampleCount {
      let id = ids[(start + number * ids.count / sampleCount) % ids.count]
      guard let seat = seats[id], isEligible(seat.address) else { continue }
      if !chooses { return id }
      let count = count(of: seat.address)
      if let best, best.count > count || best.count == count && best.since <= seat.since {
        continue
      }
      best = (id, count, seat.since)
    }
    return best?.id
  }
}

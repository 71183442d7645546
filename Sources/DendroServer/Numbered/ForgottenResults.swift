import DendroTree

/// Decides which results of numbered writes the server forgets (``WriteResults``). It forgets all results of an opening
/// together.
///
/// The server forgets the results of an opening that it has not heard for 30 days. If the results of users take more than
/// 48 MiB, it forgets a fifth of their openings, beginning with those that it has not heard for longest. Strangers have 16 MiB
/// of their own: if their results take more, it forgets a fifth of them, from the addresses that have most.
struct ForgottenResults {
  /// How many openings have results.
  private(set) var openingCount = 0
  /// What is given back, from the node of all results on.
  private(set) var paths: [Path] = []
  /// The results of all openings of users that were heard since are there, in milliseconds since 1970.
  private(set) var since: Int64 = 0
  /// The same for strangers.
  private(set) var strangersSince: Int64 = 0

  /// What has the results of one opening.
  private struct Opening {
    let client: Path
    let key: Key
    let heard: Int64
    let from: String
    let resultCount: Int
  }

  static let byteCountMax = 64 << 20
  static let day: Int64 = 24 * 60 * 60 * 1000

  static let strangers = Key(fixed: "anonymous")
  static let heard = Key(fixed: "heard")
  static let from = Key(fixed: "from")

  /// - Parameters:
  ///   - results: with a child for each user, which has one for each client, which has one for each opening.
  ///   - now: milliseconds since 1970.
  ///   - byteCountMax: of all results.
  init(_ results: Node, now: Int64, byteCountMax: Int = byteCountMax) {
    let openings = Self.openings(results)
    let ofUsers = openings.filter { $0.client.first != Self.strangers }
    let ofStrangers = openings.filter { $0.client.first == Self.strangers }
    openingCount = openings.count
    var users = results
    users.graft(.empty, at: Path.root.appending(Self.strangers))
    let strangersMax = byteCountMax / 4
    let usersAreMany = users.isLarger(than: byteCountMax - strangersMax)
    let strangersAreMany = results.child(Self.strangers).isLarger(than: strangersMax)

    var given: [Opening] = []
    since = Self.giveBack(ofUsers, now: now, into: &given) { rest in
      usersAreMany ? Array(rest.prefix((rest.count + 4) / 5)) : []
    }
    strangersSince = Self.giveBack(ofStrangers, now: now, into: &given) { rest in
      strangersAreMany ? Self.shareOfLargest(rest) : []
    }
    paths = Self.paths(given, in: results)
  }

  /// When an opening was heard last, within a day; nil if that is not noted.
  static func heard(_ opening: Node) -> Int64? {
    if case .integer(let time)? = opening.child(heard).scalar { time } else { nil }
  }

  /// All openings, those that were not heard for longest first.
  private static func openings(_ results: Node) -> [Opening] {
    var openings: [Opening] = []
    for (user, node) in results.children {
      for (client, node) in node.children {
        let path = Path.root.appending(user).appending(client)
        // Earlier versions have noted it for the client.
        let clientHeard = heard(node) ?? 0
        for (key, node) in node.children where node.isBranch {
          var text = ""
          if case .string(let from)? = node.child(from).scalar { text = from }
          openings.append(
            Opening(
              client: path, key: key, heard: heard(node) ?? clientHeard, from: text,
              resultCount: node.childCount))
        }
      }
    }
    return openings.sorted { $0.heard < $1.heard }
  }

  /// - Parameter others: those of the openings that are not old which are given back as well.
  /// - Returns: since when all results are there.
  private static func giveBack(
    _ openings: [Opening], now: Int64, into given: inout [Opening],
    others: (ArraySlice<Opening>) -> [Opening]
  ) -> Int64 {
    let old = openings.prefix { now - $0.heard > 30 * day }
    let gone = Array(old) + others(openings.dropFirst(old.count))
    given += gone
    guard let last = gone.map(\.heard).max() else { return 0 }
    // What was heard later in the same day has no time of its own.
    return min(last + day, now)
  }

  /// A fifth of all results, from the addresses that have most, of each those that were not heard for longest.
  private static func shareOfLargest(_ openings: ArraySlice<Opening>) -> [Opening] {
    var counts: [String: Int] = [:]
    for opening in openings { counts[opening.from, default: 0] += opening.resultCount }
    let goal = (counts.values.reduce(0, +) + 4) / 5
    // No address keeps more than this.
    var (level, above) = (0, counts.values.max() ?? 0)
    while level < above {
      let middle = (level + above + 1) / 2
      let isEnough = counts.values.reduce(0) { $0 + max(0, $1 - middle) } >= goal
      if isEnough { level = middle } else { above = middle - 1 }
    }
    var gone: [Opening] = []
    for opening in openings where counts[opening.from, default: 0] > level {
      counts[opening.from, default: 0] -= opening.resultCount
      gone.append(opening)
    }
    return gone
  }

  /// A client goes with the last of its openings.
  private static func paths(_ given: [Opening], in results: Node) -> [Path] {
    var paths: [Path] = []
    for (client, openings) in Dictionary(grouping: given, by: \.client) {
      let count = results.node(at: client).children.count { $0.node.isBranch }
      if openings.count == count {
        paths.append(client)
      } else {
        paths += openings.map { client.appending($0.key) }
      }
    }
    return paths
  }
}

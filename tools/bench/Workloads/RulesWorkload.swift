import DendroRules
import DendroTesting
import DendroTree

extension Workload {
  /// `valgrind --tool=callgrind --trace-children=yes dendro-bench rules --quick` counts the instructions.
  static let rules = Workload(
    "rules",
    "Verdicts of writes five levels deep with ten rules on the way, of which all are evaluated.",
    [
      Comparison(
        "a verdict", "verdicts",
        [
          Contestant("dendro") { try measureVerdicts($0, []) },
          Contestant("dendro, with observations") { try measureVerdicts($0, .observations) },
        ])
    ])
}

private func measureVerdicts(_ turn: Turn, _ details: RuleDetails) throws -> Measurement {
  let chat = try Chat()
  let count = turn.scaled(1_000_000)
  var allowed = 0
  var measurement = try Measurement.blocking(count) {
    for index in 0..<count { allowed += chat.decide(index, details).isAllowed ? 1 : 0 }
  }
  try expect(allowed == count, "every write is allowed")
  try expect(try chat.refusesStrangers(), "a write of another user is refused")
  measurement.add(
    "CPU time", "ns", measurement.cost.processorSeconds / Double(count) * 1e9)
  return measurement
}

/// Rooms with messages of their members, and one more message of each of 64 members.
private struct Chat {
  private let rules: Rules
  private let data: Node
  private var requests: [RuleRequest] = []
  private var newData: [Node] = []

  private static let text = """
    {"rules": {
      ".write": "auth.token.admin === true",
      "rooms": {
        ".validate": "newData.hasChildren()",
        "$room": {
          ".write": "root.child('owners/' + $room).val() === auth.uid",
          ".validate": "newData.hasChildren(['title', 'messages']) && $room.length < 40",
          "messages": {
            "$uid": {
              ".write": "auth.uid === $uid && root.child('members/' + auth.uid).exists()",
              "$message": {
                ".validate": "newData.hasChildren(['text', 'author', 'time']) && newData.child('text').isString()",
                "text": {".validate": "newData.val().length > 0 && newData.val().length <= 500"},
                "author": {".validate": "newData.val() === auth.uid"},
                "time": {".validate": "newData.val() <= now && newData.val() > now - 60000"},
                "kind": {".validate": "newData.val() === 'note' || newData.val() === 'question'"}
              }
            }
          }
        }
      }
    }}
    """

  init() throws {
    var randomness = SeededRandomness(seed: 1)
    func id(_ count: Int) -> String {
      let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
      return String((0..<count).map { _ in letters.randomElement(using: &randomness) ?? "0" })
    }
    let now: Int64 = 1_700_000_000_000
    let users = (0..<1_000).map { _ in id(28) }
    let rooms = (0..<50).map { _ in "-N" + id(18) }
    var data = Node.empty
    func set(_ path: String, _ value: Scalar) throws {
      _ = data.apply(.set(try Path(parsing: path), Node(value)))
    }
    for user in users { try set("members/\(user)", .bool(true)) }
    for (index, room) in rooms.enumerated() {
      try set("rooms/\(room)/title", .string("Room \(index)"))
      try set("owners/\(room)", .string(users[index]))
      for user in users[100..<120] {
        for _ in 0..<5 {
          try set("rooms/\(room)/messages/\(user)/-N\(id(18))/text", .string("Hello"))
        }
      }
    }
    rules = try Rules(Self.text)
    self.data = data
    for index in 0..<64 {
      let user = users[100 + index % 40]
      let path = "rooms/\(rooms[index % rooms.count])/messages/\(user)/-O\(id(18))"
      let message = try JSONParser.parse(
        """
        {"text": "A message of fifty characters, as people write it.", "author": "\(user)",
         "time": \(now), "kind": "question"}
        """)
      var after = data
      _ = after.apply(.set(try Path(parsing: path), message))
      let claims = JSONObject([("sub", .scalar(.string(user))), ("admin", false)])
      let auth = RuleAuth(userID: user, claims: claims)
      requests.append(try RuleRequest(setting: path, auth: auth, now: now))
      newData.append(after)
    }
  }

  func decide(_ index: Int, _ details: RuleDetails) -> RuleVerdict {
    let index = index % requests.count
    return rules.decide(requests[index], data: data, newData: newData[index], details: details)
  }

  func refusesStrangers() throws -> Bool {
    var request = requests[0]
    request.auth = RuleAuth(userID: "nobody")
    return !rules.decide(request, data: data, newData: newData[0]).isAllowed
  }
}

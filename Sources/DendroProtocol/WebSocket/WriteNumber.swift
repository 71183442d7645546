import DendroTree

/// The number that a client has given a write, so that a server makes the write once however often it is sent: the member `n`
/// of a put's or a merge's body.
package struct WriteNumber: Sendable, Equatable {
  /// Names the client: 32 hexadecimal digits, drawn once.
  package let client: String
  /// Names the opening in which the client has made the write: 16 hexadecimal digits.
  package let incarnation: String
  package let number: Int
  /// None of this opening's writes without an answer has a lower number.
  package let lowest: Int

  package init(client: String, incarnation: String, number: Int, lowest: Int) {
    self.client = client
    self.incarnation = incarnation
    self.number = number
    self.lowest = lowest
  }

  /// - Throws: `RESTError` if a member is none of these.
  init(_ members: JSONMembers) throws(RESTError) {
    guard let client = members.string("c"), Self.isHexadecimal(client, 32),
      let incarnation = members.string("i"), Self.isHexadecimal(incarnation, 16),
      let number = members.integer("n"), let lowest = members.integer("l"),
      (1...Int64(Int32.max)).contains(number), (1...number).contains(lowest)
    else { throw .badRequest("Invalid number of a write") }
    self.client = client
    self.incarnation = incarnation
    self.number = Int(number)
    self.lowest = Int(lowest)
  }

  private static func isHexadecimal(_ text: String, _ count: Int) -> Bool {
    text.utf8.count == count
      && text.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
      }
  }

  /// As a member of a body.
  func append(to text: inout [UInt8]) {
    // Part by part: the string of all is made anew with each of them.
    text += "{\"c\":\"".utf8
    text += client.utf8
    text += "\",\"i\":\"".utf8
    text += incarnation.utf8
    text += "\",\"n\":".utf8
    text += "\(number)".utf8
    text += ",\"l\":".utf8
    text += "\(lowest)}".utf8
  }

  /// Tells the contents of writes apart: 16 hexadecimal digits.
  static func digest(_ name: String, _ body: JSONMembers) -> String {
    var text = Array(name.utf8)
    for part in [body["p"], body["d"], body["h"]] { text += part ?? [] }
    return hexadecimal(Array(SHA1.digest(of: text).prefix(8)))
  }
}

/// What a server says of itself that makes writes once: the member `dendro` of its hello.
package struct NumberedServer: Sendable, Equatable {
  /// Names the history of the database: 32 hexadecimal digits, others after a restore and after a repair that has lost results.
  package let branch: String
  /// The number of its last write.
  package let lsn: UInt64
  /// It has the results of all writes of users that it has got since, in milliseconds since 1970.
  package let since: Int64
  /// The same for those who have not signed in, if that is later.
  package let strangersSince: Int64

  package init(branch: String, lsn: UInt64, since: Int64, strangersSince: Int64 = 0) {
    self.branch = branch
    self.lsn = lsn
    self.since = since
    self.strangersSince = strangersSince
  }

  /// - Returns: nil for what is none.
  init?(_ members: JSONMembers) {
    guard let branch = members.string("branch"), !branch.isEmpty, branch.utf8.count <= 64,
      let lsn = members.integer("lsn").flatMap({ UInt64(exactly: $0) }),
      let since = members.integer("since")
    else { return nil }
    self.init(
      branch: branch, lsn: lsn, since: since, strangersSince: members.integer("strangers") ?? 0)
  }

  var text: String {
    let strangers = strangersSince > since ? ",\"strangers\":\(strangersSince)" : ""
    return "{\"branch\":\"\(branch)\",\"lsn\":\(lsn),\"since\":\(since)\(strangers)}"
  }
}

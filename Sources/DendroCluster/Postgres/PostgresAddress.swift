import CDendroPQ

/// An address of PostgreSQL: a `postgresql://` URL, or a line of keys and values.
///
/// No error says what is in it: a part that is at the wrong place may be of the password.
struct PostgresAddress {
  let text: String
  /// What is said of each of its hosts, instead of the lists that the address has.
  let hosts: [[(key: String, value: String)]]
  private let passwords: [String]

  /// - Throws: `badAddress`, `noLibrary`.
  init(_ text: String) throws(PostgresError) {
    self.text = text
    try Self.checkMarks(text)
    let pq = try PostgresLibrary.functions()
    var reason: UnsafeMutablePointer<CChar>?
    guard let options = pq.pointee.PQconninfoParse(text, &reason) else {
      defer { pq.pointee.PQfreemem(reason) }
      // libpq quotes the part that it cannot read, which may be a password.
      throw .badAddress("it is neither a postgresql:// URL nor a line of keys and values")
    }
    defer { pq.pointee.PQconninfoFree(options) }
    var values: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val {
        values[String(cString: keyword)] = String(cString: value)
      }
      option += 1
    }
    guard (values["port"] ?? "").allSatisfy({ $0.isASCII && $0.isNumber || $0 == "," }) else {
      throw .badAddress("the port is not a number; a : or / of a password has to be %3A or %2F")
    }
    hosts = Self.hosts(values)
    passwords = ["password", "sslpassword"].compactMap { values[$0] }.filter { !$0.isEmpty }
  }

  /// A URL whose password has an @ or a / names another host than it seems to.
  private static func checkMarks(_ text: String) throws(PostgresError) {
    guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") else { return }
    // As libpq reads it: the first @ before a / ends the password.
    var rest = text[...].drop { $0 != "/" }.dropFirst(2)
    if let mark = rest.firstIndex(where: { $0 == "@" || $0 == "/" }), rest[mark] == "@" {
      rest = rest[mark...].dropFirst()
    }
    guard !rest.prefix(while: { $0 != "?" }).contains("@") else {
      throw .badAddress("an @ or / of a user or password has to be %40 or %2F")
    }
  }

  private static func hosts(_ values: [String: String]) -> [[(key: String, value: String)]] {
    let lists = ["host", "hostaddr", "port"].compactMap { key in
      values[key].map { (key, $0.split(separator: ",", omittingEmptySubsequences: false)) }
    }
    let count = lists.map(\.1.count).max() ?? 1
    // What libpq does with two rounds, or refuses, is left to it.
    guard count > 1, values["target_session_attrs"] != "prefer-standby",
      lists.allSatisfy({ $0.1.count == count || $0.0 == "port" && $0.1.count == 1 })
    else { return [[]] }
    return (0..<count).map { index in
      lists.map { ($0.0, String($0.1[$0.1.count == 1 ? 0 : index])) }
    }
  }

  /// A text of libpq or of the server, without the password.
  func redacted(_ text: String) -> String {
    passwords.reduce(text) { $0.replacing($1, with: "…") }
  }
}

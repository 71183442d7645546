import DendroTree

/// The items of a request's query, apart from those of `RESTQuery` and `Credentials`.
///
/// Items with other names are ignored: clients add their own.
struct RESTParameters {
  private let target: RequestTarget

  init(_ target: RequestTarget) { self.target = target }

  func flag(_ name: String) -> Bool { target[name] == "true" }

  var print: RESTRequest.Print {
    switch target["print"] {
    case "pretty": .pretty
    case "silent": .silent
    default: .normal
    }
  }

  var form: JSONStyle.Form {
    target["format"] == "export" ? .exportAsObjects : .value
  }

  /// A name, perhaps with members: nothing that would run as a script of its own.
  func callback() throws(RESTError) -> String? {
    guard let name = target["callback"] else { return nil }
    let isSafe = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    guard isSafe, let first = name.utf8.first, !(0x30...0x39).contains(first),
      name.utf8.count <= 128
    else { throw .badRequest("callback must be the name of a function") }
    return name
  }

  func download() throws(RESTError) -> String? {
    guard let name = target["download"] else { return nil }
    let isSafe = name.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 0x20 && scalar.value < 0x7F && scalar != "\"" && scalar != "\\"
        && scalar != "/"
    }
    guard isSafe, (1...255).contains(name.utf8.count) else {
      throw .badRequest("download must be a file name of printable ASCII characters")
    }
    return name
  }

  /// What a reading may take; nil for any time.
  func timeout() throws(RESTError) -> Duration? {
    guard let text = target["timeout"] else { return nil }
    let units: [(String, Int)] = [("ms", 1), ("min", 60_000), ("s", 1_000)]
    for (unit, milliseconds) in units where text.hasSuffix(unit) {
      guard let count = Int(text.dropLast(unit.count)), count > 0 else { break }
      guard count <= 15 * 60_000 / milliseconds else {
        throw .badRequest("timeout must not exceed 15min")
      }
      return .milliseconds(count * milliseconds)
    }
    throw .badRequest("timeout must be a positive number of ms, s or min")
  }

  /// The number of a write that a reading has to show; nil for any state.
  func atLeast() throws(RESTError) -> UInt64? {
    guard let text = target["atLeast"] else { return nil }
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let lsn = UInt64(text) else {
      throw .badRequest("atLeast must be the number of a write, as X-Dendro-LSN has it")
    }
    return lsn
  }

  /// How long a write may take; nil for what the database's settings say.
  func writeSizeLimit() throws(RESTError) -> WriteSizeLimit? {
    guard let text = target["writeSizeLimit"] else { return nil }
    guard let limit = WriteSizeLimit(rawValue: text) else {
      throw .badRequest("writeSizeLimit must be \(WriteSizeLimit.names)")
    }
    return limit
  }
}

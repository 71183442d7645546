import Dendro
import DendroTree

extension FuzzTarget {
  /// A text, taken for the URL of a location.
  static let url = FuzzTarget(
    "url", "the URLs of locations", byteLimit: 1024, weight: 20,
    seeds: {
      let own = URLChecks.database.reference().url
      return [
        own, own + "/a/b", own + "/a%20b/%C3%A9", own + "/a+b?ns=x", "https://x.firebaseio.com/a",
        own + "/%2F/%", own + "/a.b", "http://localhost:9000/?ns=db", ":99999/",
      ].map { Array($0.utf8) }
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      let reference = URLChecks.database.reference(fromURL: input.text())
      let url = reference.url
      try require(
        URLChecks.database.reference(fromURL: url).url == url, "\(url) is another URL read again")
    })

  /// Pairs of a step of the clock and random bits: ids that are asked for one after the other.
  static let pushID = FuzzTarget(
    "pushid", "push ids: ascending whatever the clock and the generator say", byteLimit: 512,
    weight: 25,
    seeds: {
      [
        Array(repeating: 0, count: 40), Array(repeating: 255, count: 60),
        Array((0..<80).map { UInt8($0 * 7 % 256) }),
      ]
    },
    body: { bytes in
      var input = FuzzInput(bytes)
      var generator = PushIDGenerator()
      var now = Int64(bitPattern: input.uint64()) >> Int64(input.uint8() & 31)
      var last: Key?
      // Behind the last time that an id can hold there is no next one.
      let timeMax = Int64(1) << 48 - 2
      while !input.isAtEnd, now < timeMax {
        let bits = input.uint8()
        let id = generator.next(now: now) {
          bits == 255 ? .max : UInt64(bits) &* 0x0101_0101_0101_0101
        }
        let key = attempt { () throws(ValidationError) in try Key(id) }
        try require(id.utf8.count == 20 && key != nil, "\(id) is no push id")
        if let last, let key { try require(last < key, "\(id) comes after \(last)") }
        last = key
        now = now.addingReportingOverflow(Int64(input.uint8()) - 100).partialValue
      }
    })
}

private enum URLChecks {
  static let database = Database.inMemory()
}

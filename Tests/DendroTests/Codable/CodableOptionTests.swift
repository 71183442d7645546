import Dendro
import Foundation
import Testing

@Suite("Options of the coders")
struct CodableOptionTests {
  struct Holder<T: Codable & Equatable & Sendable>: Codable, Equatable, Sendable { var v: T }

  // MARK: Dates

  static let date = Date(timeIntervalSince1970: 1_700_000_000.25)

  struct DateRow: Sendable, CustomStringConvertible {
    var description: String
    var encoding: Database.Encoder.DateEncodingStrategy
    var decoding: Database.Decoder.DateDecodingStrategy
    var stored: String
    var back = date
  }

  static let formatter: DateFormatter = {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "yyyy/MM/dd HH:mm"
    return formatter
  }()

  static let dateRows = [
    DateRow(
      description: "deferred", encoding: .deferredToDate, decoding: .deferredToDate,
      stored: "721692800.25"),
    DateRow(
      description: "seconds", encoding: .secondsSince1970, decoding: .secondsSince1970,
      stored: "1700000000.25"),
    DateRow(
      description: "milliseconds", encoding: .millisecondsSince1970,
      decoding: .millisecondsSince1970, stored: "1700000000250.0"),
    DateRow(
      description: "ISO 8601", encoding: .iso8601, decoding: .iso8601,
      stored: "\"2023-11-14T22:13:20Z\"", back: Date(timeIntervalSince1970: 1_700_000_000)),
    DateRow(
      description: "formatted", encoding: .formatted(formatter), decoding: .formatted(formatter),
      stored: "\"2023/11/14 22:13\"", back: Date(timeIntervalSince1970: 1_699_999_980)),
    DateRow(
      description: "custom",
      encoding: .custom { date, encoder in
        var container = encoder.unkeyedContainer()
        try container.encode(date.timeIntervalSince1970)
        try container.encode(["at"] + encoder.codingPath.map(\.stringValue))
      },
      decoding: .custom { decoder in
        var container = try decoder.unkeyedContainer()
        return Date(timeIntervalSince1970: try container.decode(Double.self))
      }, stored: "{0:1700000000.25,1:{0:\"at\",1:\"v\"}}"),
  ]

  @Test("dates", arguments: dateRows)
  func dates(_ row: DateRow) async throws {
    let encoder = encoder { $0.dateEncodingStrategy = row.encoding }
    let decoder = decoder { $0.dateDecodingStrategy = row.decoding }
    let value = Holder(v: Self.date)
    #expect(try await stored(value, encoder) == "{v:\(row.stored)}")
    let data = try encoder.encode(value)
    #expect(try await loaded(Holder<Date>.self, data, decoder).v == row.back)
    // At the top, in an optional and in an array.
    let alone = try await stored(Self.date, encoder)
    #expect(row.description == "custom" || alone == row.stored)
    #expect(try await loaded(Date?.self, try encoder.encode(Self.date), decoder) == row.back)
    #expect(
      try await loaded([Date].self, try encoder.encode([Self.date]), decoder) == [row.back])
  }

  @Test("dates that a strategy cannot read")
  func badDates() async throws {
    for strategy in [.iso8601, .formatted(Self.formatter)]
      as [Database.Decoder.DateDecodingStrategy]
    {
      let decoder = decoder { $0.dateDecodingStrategy = strategy }
      #expect(
        await refusal(Holder<Date>.self, ["v": "yesterday"], decoder) == "dataCorrupted v")
      #expect(await refusal(Holder<Date>.self, ["v": 5], decoder) == "typeMismatch v")
      #expect(await refusal(Holder<Date>.self, ["w": 5], decoder) == "valueNotFound v")
    }
    for strategy in [.deferredToDate, .secondsSince1970, .millisecondsSince1970]
      as [Database.Decoder.DateDecodingStrategy]
    {
      let decoder = decoder { $0.dateDecodingStrategy = strategy }
      #expect(await refusal(Holder<Date>.self, ["v": "5"], decoder) == "typeMismatch v")
      #expect(await refusal(Holder<Date>.self, ["v": true], decoder) == "typeMismatch v")
    }
    let never = Date(timeIntervalSince1970: .nan)
    #expect(
      place(thrown { _ = try Database.Encoder().encode(Holder(v: never)) }) == "invalidValue v")
    let silent = encoder { $0.dateEncodingStrategy = .custom { _, _ in } }
    #expect(shown(try silent.encode(Holder(v: Self.date))) == "{v:{}}")
  }

  @Test(
    "dates that have no text are refused, and those that have one come back",
    arguments: [
      (.nan, nil), (.infinity, nil), (-.infinity, nil), (1e300, nil), (-1e300, nil), (1e13, nil),
      (-1e11, nil), (9.2e15, nil), (253_402_300_800, nil),
      (253_402_300_799.5, "9999-12-31T23:59:59Z"), (-62_167_392_000, "0000-01-01T00:00:00Z"),
      (-62_167_392_000.5, nil), (-0.5, "1969-12-31T23:59:59Z"), (0, "1970-01-01T00:00:00Z"),
    ] as [(Double, String?)])
  func absurd(_ seconds: Double, _ text: String?) async throws {
    let date = Date(timeIntervalSince1970: seconds)
    let iso8601 = encoder { $0.dateEncodingStrategy = .iso8601 }
    if let text {
      #expect(try await stored(Holder(v: date), iso8601) == "{v:\"\(text)\"}")
      let decoder = decoder { $0.dateDecodingStrategy = .iso8601 }
      let back = Date(timeIntervalSince1970: seconds.rounded(.down))
      #expect(try await loaded(Date.self, text, decoder) == back)
    } else {
      let error = thrown { _ = try iso8601.encode(Holder(v: date)) }
      #expect(place(error) == "invalidValue v")
      #expect(message(error).contains("years 0 to 9999"))
      // Foundation traps if a date that is NaN is shown; the error can be.
      #expect(printed(error).contains("\(seconds)"))
    }
    // Of other formats, whatever the formatter can do.
    let formatted = encoder { $0.dateEncodingStrategy = .formatted(Self.formatter) }
    if abs(seconds) <= 1e11 {
      _ = try formatted.encode(Holder(v: date))
    } else if !seconds.isFinite || abs(seconds) > 1e14 {
      let error = thrown { _ = try formatted.encode(Holder(v: date)) }
      #expect(place(error) == "invalidValue v" && !printed(error).isEmpty)
    }
    // As numbers: all but what is none.
    for strategy in [.deferredToDate, .secondsSince1970, .millisecondsSince1970]
      as [Database.Encoder.DateEncodingStrategy]
    {
      let error = thrown {
        _ = try encoder { $0.dateEncodingStrategy = strategy }.encode(Holder(v: date))
      }
      #expect((error == nil) == seconds.isFinite)
      #expect(error == nil || !printed(error).isEmpty)
    }
  }

  @Test(
    "times of ISO 8601 are read with any offset",
    arguments: [
      ("2023-11-14T22:13:20Z", 1_700_000_000), ("2023-11-14T23:13:20+01:00", 1_700_000_000),
      ("2023-11-14T17:13:20-0500", 1_700_000_000),
    ] as [(String, Double)])
  func offsets(_ text: String, _ seconds: Double) async throws {
    let decoder = decoder { $0.dateDecodingStrategy = .iso8601 }
    #expect(
      try await loaded(Date.self, text, decoder) == Date(timeIntervalSince1970: seconds))
  }

  // MARK: Data

  static let bytes = Data([0, 1, 254, 255])

  struct DataRow: Sendable, CustomStringConvertible {
    var description: String
    var encoding: Database.Encoder.DataEncodingStrategy
    var decoding: Database.Decoder.DataDecodingStrategy
    var stored: String
  }

  static let dataRows = [
    DataRow(
      description: "deferred", encoding: .deferredToData, decoding: .deferredToData,
      stored: "{0:0,1:1,2:254,3:255}"),
    DataRow(
      description: "Base64", encoding: .base64, decoding: .base64, stored: "\"AAH+/w==\""),
    DataRow(
      description: "custom",
      encoding: .custom { data, encoder in
        var container = encoder.singleValueContainer()
        try container.encode(data.map { String($0, radix: 16) }.joined(separator: " "))
      },
      decoding: .custom { decoder in
        let text = try decoder.singleValueContainer().decode(String.self)
        return Data(text.split(separator: " ").map { UInt8($0, radix: 16)! })
      }, stored: "\"0 1 fe ff\""),
  ]

  @Test("data", arguments: dataRows)
  func data(_ row: DataRow) async throws {
    let encoder = encoder { $0.dataEncodingStrategy = row.encoding }
    let decoder = decoder { $0.dataDecodingStrategy = row.decoding }
    #expect(try await stored(Holder(v: Self.bytes), encoder) == "{v:\(row.stored)}")
    #expect(
      try await loaded(Holder<Data>.self, try encoder.encode(Holder(v: Self.bytes)), decoder)
        == Holder(v: Self.bytes))
    #expect(try await loaded(Data.self, try encoder.encode(Self.bytes), decoder) == Self.bytes)
  }

  @Test("a blob stays as it is, and the database refuses it")
  func blob() async throws {
    let encoder = encoder { $0.dataEncodingStrategy = .blob }
    let object = try encoder.encode(Holder(v: Self.bytes))
    #expect((object as? [String: Any])?["v"] as? Data == Self.bytes)
    let decoder = decoder { $0.dataDecodingStrategy = .blob }
    #expect(try decoder.decode(Holder<Data>.self, from: object).v == Self.bytes)
    let root = Database.inMemory().reference()
    let error = await failure {
      try await root.setValue(from: Holder(v: Self.bytes), encoder: encoder)
    }
    #expect(error?.name == "InvalidFirebaseData")
    #expect(error?.message.contains("/v") == true)
    #expect(await refusal(Holder<Data>.self, ["v": "AAH+/w=="], decoder) == "typeMismatch v")
  }

  @Test("data that a strategy cannot read")
  func badData() async throws {
    #expect(await refusal(Holder<Data>.self, ["v": "not Base64!"]) == "dataCorrupted v")
    #expect(await refusal(Holder<Data>.self, ["v": 5]) == "typeMismatch v")
    let deferred = decoder { $0.dataDecodingStrategy = .deferredToData }
    #expect(await refusal(Holder<Data>.self, ["v": [1, 256]], deferred) == "dataCorrupted v[1]")
  }

  // MARK: Floats

  @Test("NaN and infinities are refused by default")
  func throwingFloats() async throws {
    for value in [Double.nan, .infinity, -.infinity] {
      let error = thrown { _ = try Database.Encoder().encode(Holder(v: [1, value])) }
      #expect(place(error) == "invalidValue v[1]")
      #expect(message(error).contains("nonConformingFloatEncodingStrategy"))
      #expect(
        place(thrown { _ = try Database.Encoder().encode(Holder(v: Float(value))) })
          == "invalidValue v")
      #expect(place(thrown { _ = try Database.Encoder().encode(value) }) == "invalidValue ")
    }
    #expect(place(thrown { _ = try Database.Encoder().encode(Decimal.nan) }) == "invalidValue ")
    #expect(await refusal(Double.self, "NaN") == "typeMismatch ")
  }

  @Test("NaN and infinities as strings")
  func floatStrings() async throws {
    let encoder = encoder {
      $0.nonConformingFloatEncodingStrategy = .convertToString(
        positiveInfinity: "+", negativeInfinity: "-", nan: "?")
    }
    let decoder = decoder {
      $0.nonConformingFloatDecodingStrategy = .convertFromString(
        positiveInfinity: "+", negativeInfinity: "-", nan: "?")
    }
    #expect(
      try await stored([Double.infinity, -.infinity, .nan, 1.5], encoder)
        == "{0:\"+\",1:\"-\",2:\"?\",3:1.5}")
    #expect(try await stored(Float.infinity, encoder) == "\"+\"")
    let back = try decoder.decode([Float].self, from: ["+", "-", "?", 1.5] as [Any])
    #expect(back[0] == .infinity && back[1] == -.infinity && back[2].isNaN && back[3] == 1.5)
    #expect(try await loaded([Double].self, ["+", "-"], decoder) == [.infinity, -.infinity])
    #expect(await refusal(Double.self, "~", decoder) == "typeMismatch ")
    #expect(await refusal(Int.self, "+", decoder) == "typeMismatch ")
  }

  // MARK: Passing through

  struct Link: Codable, Equatable, Sendable { var to: Int }

  enum Links: StructureCodingPassthroughTypeResolver {
    static func isPassthroughType<T>(_ value: T) -> Bool {
      value is Link || (value as Any) is [Link]
    }
  }

  @Test("what the resolver names passes through")
  func passthrough() async throws {
    struct Page: Codable, Equatable {
      var link: Link
      var text: String
    }
    let encoder = encoder { $0.passthroughTypeResolver = Links.self }
    let page = Page(link: Link(to: 5), text: "x")
    let object = try #require(try encoder.encode(page) as? [String: Any])
    #expect(object["link"] as? Link == Link(to: 5))
    #expect(object["text"] as? String == "x")
    #expect(try encoder.encode(Link(to: 5)) is Link)
    let decoder = decoder { $0.passthroughTypeResolver = Links.self }
    #expect(try decoder.decode(Page.self, from: object) == page)
    #expect(
      place(thrown { _ = try Database.Decoder().decode(Page.self, from: object) })
        == "typeMismatch link")
    let root = Database.inMemory().reference()
    let error = await failure { try await root.setValue(from: page, encoder: encoder) }
    #expect(error?.message.contains("/link") == true)
  }

  enum Numbers: StructureCodingPassthroughTypeResolver {
    static func isPassthroughType<T>(_ value: T) -> Bool { value is Int || value is String }
  }

  @Test("passed through, the database takes what it can hold")
  func passthroughScalars() async throws {
    let encoder = encoder { $0.passthroughTypeResolver = Numbers.self }
    #expect(try await stored(["a": 1, "b": 2], encoder) == "{a:1,b:2}")
    let decoder = decoder { $0.passthroughTypeResolver = Numbers.self }
    #expect(try await loaded([String: Int].self, ["a": 1], decoder) == ["a": 1])
    #expect(try await loaded(Holder<Bool>.self, ["v": true], decoder) == Holder(v: true))
  }

  // MARK: userInfo

  static let key = CodingUserInfoKey(rawValue: "unit")!

  struct Length: Codable, Equatable {
    var meters: Int

    init(meters: Int) { self.meters = meters }

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer().decode(Int.self)
      meters = decoder.userInfo[CodableOptionTests.key] as? String == "km" ? value * 1000 : value
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      let isKilometers = encoder.userInfo[CodableOptionTests.key] as? String == "km"
      try container.encode(isKilometers ? meters / 1000 : meters)
    }
  }

  @Test("userInfo reaches every level")
  func userInfo() async throws {
    let encoder = encoder { $0.userInfo[Self.key] = "km" }
    let decoder = decoder { $0.userInfo[Self.key] = "km" }
    let value = ["a": [Length(meters: 5000)]]
    #expect(try await stored(value, encoder) == "{a:{0:5}}")
    #expect(try await stored(value) == "{a:{0:5000}}")
    #expect(try await loaded([String: [Length]].self, ["a": [5]], decoder) == value)
    #expect(Database.Encoder().userInfo.isEmpty && Database.Decoder().userInfo.isEmpty)
  }

  // MARK: Defaults

  @Test("defaults")
  func defaults() {
    let encoder = Database.Encoder()
    let decoder = Database.Decoder()
    if case .deferredToDate = encoder.dateEncodingStrategy {} else { Issue.record("date") }
    if case .base64 = encoder.dataEncodingStrategy {} else { Issue.record("data") }
    if case .throw = encoder.nonConformingFloatEncodingStrategy {} else { Issue.record("float") }
    if case .useDefaultKeys = encoder.keyEncodingStrategy {} else { Issue.record("keys") }
    if case .deferredToDate = decoder.dateDecodingStrategy {} else { Issue.record("date") }
    if case .base64 = decoder.dataDecodingStrategy {} else { Issue.record("data") }
    if case .throw = decoder.nonConformingFloatDecodingStrategy {} else { Issue.record("float") }
    if case .useDefaultKeys = decoder.keyDecodingStrategy {} else { Issue.record("keys") }
    let passes = [
      encoder.passthroughTypeResolver.isPassthroughType(5),
      decoder.passthroughTypeResolver.isPassthroughType(5),
    ]
    #expect(passes == [false, false])
    let shared: any Sendable = [encoder as any Sendable, decoder]
    _ = shared
  }
}

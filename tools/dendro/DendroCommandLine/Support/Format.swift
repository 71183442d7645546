/// Numbers, sizes and times for people.
enum Format {
  /// 1234567 as `1,234,567`.
  static func count(_ value: some BinaryInteger) -> String {
    let digits = String(value)
    let sign = digits.hasPrefix("-") ? "-" : ""
    var result = ""
    for (index, digit) in digits.dropFirst(sign.count).reversed().enumerated() {
      if index > 0, index % 3 == 0 { result.append(",") }
      result.append(digit)
    }
    return sign + String(result.reversed())
  }

  /// `1 write`, `2 writes`.
  static func count(_ value: some BinaryInteger, _ noun: String) -> String {
    value == 1
      ? "1 \(noun)" : "\(count(value)) \(noun.hasSuffix("f") ? noun.dropLast() + "ve" : noun[...])s"
  }

  /// In powers of 1024, three digits or so: `512 B`, `1.5 KiB`.
  static func bytes(_ value: UInt64) -> String {
    guard value >= 1024 else { return "\(value) B" }
    var size = Double(value)
    var unit = 0
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while size >= 1024, unit + 1 < units.count {
      size /= 1024
      unit += 1
    }
    return "\(decimal(size, places: size < 10 ? 2 : 1)) \(units[unit])"
  }

  static func seconds(_ value: Double) -> String {
    switch value {
    case ..<0.001: "\(decimal(value * 1e6, places: 0)) µs"
    case ..<1: "\(decimal(value * 1e3, places: value < 0.01 ? 1 : 0)) ms"
    default: "\(decimal(value, places: 2)) s"
    }
  }

  /// Rounded, without exponent.
  static func decimal(_ value: Double, places: Int) -> String {
    guard value.isFinite, value.magnitude < 1e15 else { return "\(value)" }
    var scale = 1
    for _ in 0..<places { scale *= 10 }
    let scaled = Int((value.magnitude * Double(scale)).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard places > 0 else { return "\(sign)\(scaled)" }
    let fraction = String(scaled % scale)
    let zeros = String(repeating: "0", count: places - fraction.count)
    return "\(sign)\(scaled / scale).\(zeros)\(fraction)"
  }

  /// Milliseconds since 1970 as `2026-11-21T04:00:00.123Z`.
  static func time(_ milliseconds: Int64) -> String {
    // Days and the time within one, both floored; then the civil calendar
    // (Howard Hinnant, «chrono-compatible low-level date algorithms»).
    let day: Int64 = 86_400_000
    let days = milliseconds / day - (milliseconds % day < 0 ? 1 : 0)
    let rest = milliseconds - days * day
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let dayOfMonth = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))"
    let clock =
      "\(padded(rest / 3_600_000, 2)):\(padded(rest / 60_000 % 60, 2)):\(padded(rest / 1000 % 60, 2))"
    return "\(date)T\(clock).\(padded(rest % 1000, 3))Z"
  }

  /// Reads what ``time(_:)`` writes and shorter forms of it (`2026-11-21`, `2026-11-21 04:00`), with an offset
  /// from UTC or without (`+02:00`, `Z`); `now`; and `10 minutes ago`.
  ///
  /// - Parameter now: milliseconds since 1970.
  static func parseTime(_ text: String, now: Int64) -> Int64? {
    if text == "now" { return now }
    return parseAgo(text).map { now - $0 } ?? parseDate(text)
  }

  /// `10 minutes ago`, in milliseconds.
  private static func parseAgo(_ text: String) -> Int64? {
    let words = text.split(separator: " ")
    guard words.count == 3, words[2] == "ago", let count = Int64(words[0]), count >= 0 else {
      return nil
    }
    let unit = words[1].hasSuffix("s") ? words[1].dropLast() : words[1]
    let units: [Substring: Int64] = [
      "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000,
    ]
    guard let milliseconds = units[unit], count < 1 << 33 else { return nil }
    return count.multipliedReportingOverflow(by: milliseconds).partialValue
  }

  /// A date, with a time of day and an offset from UTC or without.
  private static func parseDate(_ text: String) -> Int64? {
    let halves = text.split(
      maxSplits: 1, omittingEmptySubsequences: false, whereSeparator: { $0 == "T" || $0 == " " })
    guard let first = halves.first else { return nil }
    let date = first.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
    guard date.count == 3, let year = date[0], let month = date[1], let day = date[2],
      (0...9999).contains(year), (1...12).contains(month),
      (1...dayCount(ofMonth: month, in: year)).contains(day)
    else { return nil }
    var clock: Int64 = 0
    if halves.count == 2 {
      guard let found = parseClock(halves[1]) else { return nil }
      clock = found
    }
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    return days * 86_400_000 + clock
  }

  /// `04:00`, `04:00:12.345`, with `Z`, `+02:00`, ` +0200` or nothing behind it: milliseconds since midnight UTC.
  private static func parseClock(_ text: Substring) -> Int64? {
    var text = text
    var offset: Int64 = 0
    if text.hasSuffix("Z") {
      text = text.dropLast()
    } else if let sign = text.lastIndex(where: { $0 == "+" || $0 == "-" }) {
      let digits = text[sign...].dropFirst().replacing(":", with: "")
      guard digits.count == 4, let hours = Int64(digits.prefix(2)),
        let minutes = Int64(digits.suffix(2)), hours <= 14, minutes < 60, hours >= 0, minutes >= 0
      else { return nil }
      offset = (hours * 3600 + minutes * 60) * (text[sign] == "-" ? -1000 : 1000)
      text = text[..<sign]
    }
    while text.hasSuffix(" ") { text = text.dropLast() }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard (2...3).contains(parts.count), let hours = Int64(parts[0]),
      let minutes = Int64(parts[1]), (0...23).contains(hours), (0...59).contains(minutes)
    else { return nil }
    var milliseconds = hours * 3_600_000 + minutes * 60_000
    if parts.count == 3 {
      guard let seconds = Double(parts[2]), seconds >= 0, seconds < 61 else { return nil }
      milliseconds += Int64((seconds * 1000).rounded())
    }
    return milliseconds - offset
  }

  private static func dayCount(ofMonth month: Int64, in year: Int64) -> Int64 {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    switch month {
    case 2: return isLeap ? 29 : 28
    case 4, 6, 9, 11: return 30
    default: return 31
    }
  }

  private static func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

extension String {
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }

  func leftPadded(to width: Int) -> String {
    String(repeating: " ", count: max(0, width - count)) + self
  }
}

extension Format {
  /// `3`, `1 to 5`, `1 to 5, 7 and 9 to 12`; of very many, the first ones and how many more there are.
  static func ranges(_ ranges: [ClosedRange<UInt64>], limit: Int = 12) -> String {
    if ranges.count > limit {
      let first = self.ranges(Array(ranges.prefix(limit - 1))).replacing(" and ", with: ", ")
      return first + " and \(count(ranges.count - limit + 1)) ranges more"
    }
    let words = ranges.map { range in
      range.lowerBound == range.upperBound
        ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
    }
    guard let last = words.last, words.count > 1 else { return words.first ?? "none" }
    return words.dropLast().joined(separator: ", ") + " and " + last
  }
}

/// Parses and writes the numbers of JSON.
enum JSONNumber {
  enum Parsed {
    case number(Number)
    /// The number exceeds the largest double.
    case outOfRange
    /// The index of the first byte that violates the grammar, and what was expected there.
    case malformed(Int, String)
  }

  /// The number of bytes from `start` that can be part of a number.
  @inline(__always)
  static func length(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
    var current = start
    loop: while current < end {
      switch current.pointee {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"),
        UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"):
        current += 1
      default: break loop
      }
    }
    return current - start
  }

  /// Parses a number that fills `text` (RFC 8259, section 6).
  ///
  /// A number without fraction and exponent that fits Int64 becomes an integer; every other number
  /// becomes the nearest double.
  static func parse(_ text: UnsafeBufferPointer<UInt8>) -> Parsed {
    var index = 0
    @inline(__always) func digit() -> UInt64? {
      guard index < text.count else { return nil }
      let value = text[index] &- UInt8(ascii: "0")
      return value <= 9 ? UInt64(value) : nil
    }
    let isNegative = index < text.count && text[index] == UInt8(ascii: "-")
    if isNegative { index += 1 }

    // A mantissa of 19 digits fits UInt64. With more digits `double` takes its slow path, which reads
    // the text again.
    var mantissa: UInt64 = 0
    var digits = 0
    var exponent = 0
    guard let first = digit() else { return .malformed(index, "expected a digit") }
    if first == 0 {
      index += 1
      if digit() != nil { return .malformed(index, "a number has no leading zero") }
    } else {
      while let value = digit() {
        if digits < 19 { mantissa = mantissa &* 10 &+ value }
        digits += 1
        index += 1
      }
    }
    if index == text.count {
      // "-0" is not an Int64: it stays a double and keeps its sign.
      if digits <= 19, !(isNegative && mantissa == 0) {
        let limit = UInt64(Int64.max) + (isNegative ? 1 : 0)
        if mantissa <= limit {
          let bits = Int64(truncatingIfNeeded: mantissa)
          return .number(.integer(isNegative ? 0 &- bits : bits))
        }
      }
      return double(
        text, isNegative: isNegative, mantissa: mantissa, digitCount: digits, exponent: 0)
    }

    if text[index] == UInt8(ascii: ".") {
      index += 1
      guard digit() != nil else { return .malformed(index, "expected a digit after the point") }
      while let value = digit() {
        if digits < 19 { mantissa = mantissa &* 10 &+ value }
        if digits > 0 || value > 0 { digits += 1 }
        exponent -= 1
        index += 1
      }
    }
    if index < text.count, text[index] | 0x20 == UInt8(ascii: "e") {
      index += 1
      var isSmall = false
      if index < text.count, text[index] == UInt8(ascii: "+") || text[index] == UInt8(ascii: "-") {
        isSmall = text[index] == UInt8(ascii: "-")
        index += 1
      }
      guard digit() != nil else { return .malformed(index, "expected a digit in the exponent") }
      var value = 0
      while let next = digit() {
        // An exponent of a million is beyond any double, and adding it to another cannot overflow.
        if value < 1_000_000 { value = value * 10 + Int(next) }
        index += 1
      }
      exponent += isSmall ? -value : value
    }
    guard index == text.count else { return .malformed(index, "this is not a number") }
    return double(
      text, isNegative: isNegative, mantissa: mantissa, digitCount: digits, exponent: exponent)
  }

  private static let powers: [Double] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
  ]

  private static func double(
    _ text: UnsafeBufferPointer<UInt8>, isNegative: Bool, mantissa: UInt64, digitCount: Int,
    exponent: Int
  ) -> Parsed {
    // A mantissa up to 2^53 and a power of ten up to 10^22 are exact doubles, so one operation
    // rounds once and correctly (Clinger, «How to read floating point numbers accurately», 1990).
    if digitCount <= 19, mantissa <= 1 << 53, exponent >= -22, exponent <= 22 {
      let exact = Double(mantissa)
      let value = exponent < 0 ? exact / powers[-exponent] : exact * powers[exponent]
      return .number(.double(isNegative ? -value : value))
    }
    guard let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite else {
      return .outOfRange
    }
    return .number(.double(value))
  }

  /// The most bytes that ``write(_:to:)`` writes for one number.
  static let byteCountMax = 32

  /// Writes an integer with all its digits.
  ///
  /// - Returns: the number of bytes written.
  @inline(__always)
  static func write(_ value: Int64, to target: UnsafeMutablePointer<UInt8>) -> Int {
    var target = target
    var count = 0
    if value < 0 {
      target.pointee = UInt8(ascii: "-")
      target += 1
      count = 1
    }
    return count + write(magnitude: value.magnitude, to: target)
  }

  @inline(__always)
  private static func write(magnitude: UInt64, to target: UnsafeMutablePointer<UInt8>) -> Int {
    var length = 1
    var bound: UInt64 = 10
    while magnitude >= bound {
      length += 1
      let (product, overflow) = bound.multipliedReportingOverflow(by: 10)
      if overflow { break }
      bound = product
    }
    var rest = magnitude
    var index = length
    repeat {
      index -= 1
      let quotient = rest / 10
      target[index] = UInt8(truncatingIfNeeded: rest &- quotient &* 10) &+ UInt8(ascii: "0")
      rest = quotient
    } while index > 0
    return length
  }

  /// Writes a finite double as JavaScript's `String(x)` does (ECMA-262, Number::toString).
  ///
  /// Unlike JavaScript, it writes whole numbers from 2^53 to 2^63 with all their digits: parsed as
  /// integers, they equal the double. Negative zero is written as `0`.
  ///
  /// - Returns: the number of bytes written.
  static func write(_ value: Double, to target: UnsafeMutablePointer<UInt8>) -> Int {
    var target = target
    var count = 0
    var value = value
    if value < 0 {
      target.pointee = UInt8(ascii: "-")
      target += 1
      count = 1
      value = -value
    }
    if value <= 0x1p63, value == value.rounded(.towardZero) {
      return count + write(magnitude: UInt64(value), to: target)
    }
    if let length = writeShort(value, to: target) { return count + length }
    return count + writeShortest(value, to: target)
  }

  /// Writes a double that has at most 15 digits, at most six of them after the point; nil for other
  /// doubles. Most numbers in documents are of this form.
  ///
  /// A decimal of 15 digits survives conversion to a double and back, so no shorter text and no other
  /// text of this length parses to the same double. The test is exact, since dividing two exact
  /// doubles gives the double nearest to the quotient.
  private static func writeShort(_ value: Double, to target: UnsafeMutablePointer<UInt8>) -> Int? {
    guard value < 1e9, value >= 1e-6 else { return nil }
    var decimals = 1
    while decimals <= 6 {
      let scaled = (value * powers[decimals]).rounded()
      if scaled / powers[decimals] == value {
        var digits = UInt64(scaled)
        let whole = digits / UInt64(powers[decimals])
        digits -= whole * UInt64(powers[decimals])
        let length = write(magnitude: whole, to: target)
        target[length] = UInt8(ascii: ".")
        var index = length + decimals
        while index > length {
          target[index] = UInt8(truncatingIfNeeded: digits % 10) + UInt8(ascii: "0")
          digits /= 10
          index -= 1
        }
        return length + 1 + decimals
      }
      decimals += 1
    }
    return nil
  }

  /// Writes the shortest digits that parse to a positive double. The standard library finds the
  /// digits; it only places the point and the exponent differently from JavaScript.
  private static func writeShortest(_ value: Double, to target: UnsafeMutablePointer<UInt8>) -> Int
  {
    // The shortest digits of a double are at most 17.
    var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
    return withUnsafeMutableBytes(of: &digits) { digits in
      var count = 0
      var leading = true
      // The value is 0.d₁d₂d₃… · 10^point.
      var point = 0
      var seenPoint = false
      var exponent = 0
      var isSmall = false
      var inExponent = false
      for byte in value.description.utf8 {
        switch byte {
        case UInt8(ascii: "."): seenPoint = true
        case UInt8(ascii: "e"): inExponent = true
        case UInt8(ascii: "-"): isSmall = true
        case UInt8(ascii: "+"): break
        default:
          let digit = byte &- UInt8(ascii: "0")
          if inExponent {
            exponent = exponent * 10 + Int(digit)
          } else if leading, digit == 0 {
            if seenPoint { point -= 1 }
          } else {
            leading = false
            if count < digits.count {
              digits[count] = byte
              count += 1
            }
            if !seenPoint { point += 1 }
          }
        }
      }
      point += isSmall ? -exponent : exponent
      while count > 1, digits[count - 1] == UInt8(ascii: "0") { count -= 1 }
      return format(digits, count, point, to: target)
    }
  }

  /// Writes digits with the point and the exponent where JavaScript places them.
  private static func format(
    _ digits: UnsafeMutableRawBufferPointer, _ count: Int, _ point: Int,
    to target: UnsafeMutablePointer<UInt8>
  ) -> Int {
    var length = 0
    func put(_ byte: UInt8) {
      target[length] = byte
      length += 1
    }
    if point >= count, point <= 21 {
      for index in 0..<count { put(digits[index]) }
      for _ in count..<point { put(UInt8(ascii: "0")) }
    } else if point > 0, point <= 21 {
      for index in 0..<count {
        if index == point { put(UInt8(ascii: ".")) }
        put(digits[index])
      }
    } else if point > -6, point <= 0 {
      put(UInt8(ascii: "0"))
      put(UInt8(ascii: "."))
      for _ in 0..<(-point) { put(UInt8(ascii: "0")) }
      for index in 0..<count { put(digits[index]) }
    } else {
      put(digits[0])
      if count > 1 { put(UInt8(ascii: ".")) }
      for index in 1..<max(1, count) { put(digits[index]) }
      put(UInt8(ascii: "e"))
      let exponent = point - 1
      put(exponent < 0 ? UInt8(ascii: "-") : UInt8(ascii: "+"))
      length += write(magnitude: UInt64(exponent.magnitude), to: target + length)
    }
    return length
  }
}

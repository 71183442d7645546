/// Which columns a line of the log has, so that it fits.
struct LogLayout {
  static let operationWidth = 9
  static let byteWidth = 7
  static let placeWidth = 14

  /// Nil: lines may have any length.
  let columns: Int?
  let lsnWidth: Int
  /// 24 with milliseconds, 19 without, 0 for no time.
  let timeWidth: Int
  /// Whether the bytes of a write and the place of its record are shown.
  let showsPlace: Bool

  init(columns: Int?) {
    self.columns = columns
    let room = columns ?? Int.max
    lsnWidth = room >= 120 ? 8 : 5
    timeWidth = room >= 100 ? 24 : room >= 60 ? 19 : 0
    showsPlace = room >= 120
  }

  /// A time with as much as has room, in UTC; spaces for none.
  func time(_ milliseconds: Int64?) -> String {
    guard let milliseconds else { return String(repeating: " ", count: timeWidth) }
    let time = Format.time(milliseconds)
    return timeWidth == 24 ? time : String(time.prefix(timeWidth)).replacing("T", with: " ")
  }

  /// The columns behind the number, the time and the operation of a line that has no other places.
  func room(besides taken: Int) -> Int {
    guard let columns else { return 200 }
    let front = lsnWidth + 2 + (timeWidth > 0 ? timeWidth + 2 : 0) + Self.operationWidth + 2
    return max(10, columns - front - taken)
  }

  var heading: String {
    var text = "LSN".leftPadded(to: lsnWidth) + "  "
    if timeWidth > 0 { text += "TIME".padded(to: timeWidth) + "  " }
    text += "OPERATION".padded(to: Self.operationWidth) + "  "
    if showsPlace {
      text += "BYTES".leftPadded(to: Self.byteWidth) + "  "
      text += "SEGMENT:OFFSET".padded(to: Self.placeWidth) + "  "
    }
    return text + "PATH  VALUE"
  }
}

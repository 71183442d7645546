import DendroPlatform

/// Where results and everything else go: data to standard output, the rest to standard error.
final class Terminal {
  let usesColor: Bool
  private var buffer = [UInt8]()

  /// Colour if standard output is a terminal that can show it and `NO_COLOR` is not set
  /// (no-color.org), or as `--color` says.
  init(color: String?) throws {
    switch color ?? "auto" {
    case "always": usesColor = true
    case "never": usesColor = false
    case "auto":
      let refused = Platform.environment("NO_COLOR").map { !$0.isEmpty } ?? false
      let terminal = Platform.environment("TERM")
      usesColor = Platform.isTerminal(1) && !refused && terminal != nil && terminal != "dumb"
    case let other:
      throw Failure.usage("--color takes auto, always or never, not \(Failure.quoted(other))")
    }
  }

  /// The columns that lines of data should fit in: those of the terminal, or of `COLUMNS`; nil for any.
  static var columns: Int? {
    if Platform.isTerminal(1) { return Platform.columnCount(1) }
    guard CapturedOutput.current == nil else { return nil }
    return Platform.environment("COLUMNS").flatMap { Int($0) }.flatMap { $0 >= 20 ? $0 : nil }
  }

  /// A line of data.
  func print(_ line: String = "") throws {
    buffer.append(contentsOf: line.utf8)
    buffer.append(UInt8(ascii: "\n"))
    if buffer.count >= 1 << 16 { try flush() }
  }

  /// A line of a report, in as many as the columns have room for: only data has lines of any length.
  ///
  /// - Parameter hanging: the spaces that those after the first begin with.
  func report(_ line: String, hanging: Int = 2) throws {
    try print(Self.folded(line, hanging: hanging))
  }

  /// The line as `report` prints it.
  static func folded(_ line: String, hanging: Int) -> String {
    columns.map { line.filled(to: $0, hanging: hanging) } ?? line
  }

  func flush() throws {
    guard !buffer.isEmpty else { return }
    Progress.wipe()
    defer { buffer.removeAll(keepingCapacity: true) }
    try buffer.withUnsafeBytes { try Platform.writeAll(1, $0, to: "standard output") }
  }

  /// A message for people, in lines that a terminal has room for. That standard error cannot be written to is not
  /// worth an error.
  static func note(_ message: String) {
    let indent = message.prefix { $0 == " " }.count + 2
    let columns = Platform.isTerminal(2) ? Platform.columnCount(2) : Int.max
    noteLine(message.filled(to: columns, hanging: indent))
  }

  /// A message that is one line, however long.
  static func noteLine(_ line: String) {
    Progress.wipe()
    write(line.printable + "\n")
  }

  /// Text for people, as it stands.
  static func write(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
      try? Platform.writeAll(2, UnsafeRawBufferPointer(bytes), to: "standard error")
    }
  }

  enum Color: String {
    case dim = "2"
    case bold = "1"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case blue = "34"
    case cyan = "36"
  }

  func colored(_ text: String, _ color: Color) -> String {
    usesColor ? "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m" : text
  }

  /// Whether a question can be asked and answered.
  static var canAsk: Bool { Platform.isTerminal(0) && Platform.isTerminal(2) }

  /// Asks before something that cannot be undone. Without a terminal, only `--force` is a yes.
  ///
  /// - Parameter isRehearsal: whether it is only checked that the question can be answered.
  /// - Throws: if the answer is no.
  static func confirm(_ question: String, force: Bool, isRehearsal: Bool = false) throws {
    if force { return }
    guard canAsk else {
      throw Failure.usage("\(question) Nothing was done", hint: "--force says yes")
    }
    if isRehearsal { return }
    Progress.wipe()
    let text = "\(question) Continue? [y/N] ".filled(to: Platform.columnCount(2) - 3)
    // The handler is set before the question shows: the user may press Ctrl-C at once.
    let answer = try Interruption.noting(SIGINT) {
      write(text)
      return Self.answer()
    }
    guard ["y", "yes"].contains(answer.lowercased()) else {
      throw Failure(.problem, "nothing was done")
    }
  }

  /// A line of the terminal. Not by `readLine()`, for which the end of the input is the end for good: in the shell, Ctrl-D
  /// answers one question.
  private static func answer() -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while Interruption.waitForInput(), read(0, &byte, 1) == 1, byte != UInt8(ascii: "\n") {
      bytes.append(byte)
    }
    if byte != UInt8(ascii: "\n") { write("\n") }
    return String(decoding: bytes, as: UTF8.self)
  }
}

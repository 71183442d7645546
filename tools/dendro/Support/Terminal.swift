#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Where results and everything else go: data to standard output, the rest to standard error.
final class Terminal {
  let usesColor: Bool
  private var buffer = [UInt8]()

  /// Colour where standard output is a terminal that can do it and nobody asked for none
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

  /// A line of data.
  func print(_ line: String = "") throws {
    buffer.append(contentsOf: line.utf8)
    buffer.append(UInt8(ascii: "\n"))
    if buffer.count >= 1 << 16 { try flush() }
  }

  func flush() throws {
    guard !buffer.isEmpty else { return }
    defer { buffer.removeAll(keepingCapacity: true) }
    try buffer.withUnsafeBytes { try Platform.writeAll(1, $0, to: "standard output") }
  }

  /// A line for people. What cannot be said is not worth an error.
  static func note(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { bytes in
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

  /// Whether to go on with what cannot be taken back. Without a terminal to ask on, the answer is no
  /// unless the caller said `--force`.
  static func confirm(_ question: String, force: Bool) throws {
    if force { return }
    guard Platform.isTerminal(0), Platform.isTerminal(2) else {
      throw Failure.usage("\(question) Nothing was done", hint: "--force says yes")
    }
    var prompt = "\(question) Go on? [y/N] "
    prompt.withUTF8 { bytes in
      try? Platform.writeAll(2, UnsafeRawBufferPointer(bytes), to: "standard error")
    }
    let answer = readLine() ?? ""
    guard ["y", "yes"].contains(answer.lowercased()) else {
      throw Failure(.problem, "nothing was done")
    }
  }
}

/// A line on standard error that is drawn over itself, at most ten times a second, and only where
/// that is a terminal.
final class Progress {
  private let isShown: Bool
  private let label: String
  private let start = Platform.uptime()
  private var last: UInt64 = 0
  private var isDrawn = false

  init(_ label: String) {
    self.label = label
    isShown = Platform.isTerminal(2) && Platform.environment("TERM") != "dumb"
  }

  deinit { clear() }

  var seconds: Double { Double(Platform.uptime() - start) / 1e9 }

  /// - Parameter total: nil where it is not known.
  func update(_ done: UInt64, of total: UInt64?, _ details: @autoclosure () -> String = "") {
    guard isShown else { return }
    let now = Platform.uptime()
    guard now - last >= 100_000_000 else { return }
    last = now
    isDrawn = true
    var line = "\r\u{1B}[K\(label) "
    if let total, total > 0 {
      let share = min(1, Double(done) / Double(total))
      let full = Int(share * 24)
      line += "[" + String(repeating: "#", count: full)
      line += String(repeating: ".", count: 24 - full) + "] "
      line += "\(Int(share * 100))% "
    }
    line += details()
    line.withUTF8 { bytes in
      try? Platform.writeAll(2, UnsafeRawBufferPointer(bytes), to: "standard error")
    }
  }

  /// Makes room for other lines.
  func clear() {
    guard isDrawn else { return }
    isDrawn = false
    var line = "\r\u{1B}[K"
    line.withUTF8 { bytes in
      try? Platform.writeAll(2, UnsafeRawBufferPointer(bytes), to: "standard error")
    }
  }
}

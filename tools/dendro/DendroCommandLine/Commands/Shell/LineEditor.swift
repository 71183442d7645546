import CDendroEdit
import DendroPlatform
import Synchronization

/// Reads lines from a terminal, with a history and completion (libedit).
///
/// There is one for the process: the library has one terminal.
struct LineEditor {
  /// What proposes completions: the line up to the word, and the word.
  typealias Proposer = @Sendable (_ line: String, _ word: String) -> [String]

  private static let proposer = Mutex<Proposer?>(nil)
  private static let wasInterrupted = Atomic<Bool>(false)
  private let historyPath: String?

  init(_ proposer: @escaping Proposer) {
    Self.proposer.withLock { $0 = proposer }
    // The library takes what is typed for characters of the locale, and drops what is none there: all text here is UTF-8.
    setlocale(LC_CTYPE, "C.UTF-8")
    historyPath = Platform.environment("HOME").map { $0 + "/.dendro_history" }
    using_history()
    stifle_history(1000)
    if let historyPath { _ = read_history(historyPath) }
    dendro_edit_set_completion { text, start, _ in
      guard let text, let line = dendro_edit_line() else { return nil }
      let word = String(cString: text)
      let before = String(String(cString: line).unicodeScalars.prefix(Int(start)))
      let found = LineEditor.proposer.withLock { $0 }?(before, word) ?? []
      let isPart = found.count != 1 || found[0].hasSuffix("/")
      dendro_edit_end_completion(isPart ? 0 : Int32(UInt8(ascii: " ")))
      return LineEditor.list(found)
    }
  }

  /// The candidates as the library takes them, which frees them: what they have in common, then each.
  private static func list(_ found: [String]) -> UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
  {
    guard let first = found.first else { return nil }
    let common = found.dropFirst().reduce(first) { $0.commonBeginning(with: $1) }
    let words = [common] + found
    let list = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>(
      OpaquePointer(malloc((words.count + 1) * MemoryLayout<UnsafeMutablePointer<CChar>?>.stride)))
    for (index, word) in words.enumerated() { (list! + index).initialize(to: strdup(word)) }
    (list! + words.count).initialize(to: nil)
    return list
  }

  /// The next line; nil at the end of the input. Ctrl-C drops what was typed, and the next line begins.
  func line(_ prompt: String) -> String? {
    // Without SA_RESTART: the library gives up its wait for a key, and the line. Otherwise the signal ends the
    // process, as it does while a verb runs.
    Interruption.handle(SIGINT) { _ in
      LineEditor.wasInterrupted.store(true, ordering: .relaxed)
      // If the library was just about to wait, this ends its wait.
      alarm(1)
    }
    Interruption.handle(SIGALRM) { _ in LineEditor.wasInterrupted.store(true, ordering: .relaxed) }
    defer {
      signal(SIGINT, SIG_DFL)
      alarm(0)
      signal(SIGALRM, SIG_DFL)
    }
    while true {
      Self.wasInterrupted.store(false, ordering: .relaxed)
      let line = readline(prompt)
      alarm(0)
      if let line {
        defer { free(line) }
        let text = String(cString: line)
        if !text.isEmpty { _ = add_history(line) }
        return text
      }
      guard Self.wasInterrupted.load(ordering: .relaxed) else { return nil }
      Terminal.write("^C\n")
    }
  }

  /// Keeps the history for the next time, for the user alone.
  func close() {
    guard let historyPath else { return }
    let file = open(historyPath, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    if file >= 0 { _ = DendroPlatform.close(file) }
    _ = write_history(historyPath)
  }
}

extension String {
  /// By code points: keys may be equal as characters and yet be two.
  fileprivate func commonBeginning(with other: String) -> String {
    var common = ""
    for (own, its) in zip(unicodeScalars, other.unicodeScalars) {
      guard own == its else { break }
      common.unicodeScalars.append(own)
    }
    return common
  }
}

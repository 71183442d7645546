import Synchronization

/// What a verb said that was run inside another program.
///
/// Any thread may call.
package final class CapturedOutput: Sendable {
  /// Where both streams of the verb that this task runs go; nil, the default, is to the process's own.
  @TaskLocal static var current: CapturedOutput?

  /// More than any verb has to say about a small directory; what is above it is dropped.
  private static let byteLimit = 64 << 20

  private let said = Mutex<(output: [UInt8], errors: [UInt8])>(([], []))

  package init() {}

  /// Standard output so far.
  package var output: [UInt8] { said.withLock { $0.output } }
  /// Standard error so far.
  package var errors: [UInt8] { said.withLock { $0.errors } }

  func append(_ bytes: UnsafeRawBufferPointer, isError: Bool) {
    let bytes = [UInt8](bytes)
    said.withLock { said in
      let count = said.output.count + said.errors.count
      guard bytes.count <= Self.byteLimit - count else { return }
      if isError { said.errors += bytes } else { said.output += bytes }
    }
  }

  /// Runs a verb and keeps what it says.
  ///
  /// - Parameter words: the verb and what follows it.
  /// - Returns: the exit status.
  package func run(_ words: [String]) -> Int32 {
    Self.$current.withValue(self) { CommandLineTool.run(words) }
  }
}

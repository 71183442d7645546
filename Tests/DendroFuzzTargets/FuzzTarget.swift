import DendroPlatform

/// One parser, held against any bytes: it ends in a value or in an error, soon, and what it gives
/// keeps the promises that are made of it.
///
/// The same targets are run by the fuzzer (`tools/fuzz`), which looks for new inputs, and by an
/// ordinary test, which replays the inputs that are kept.
package struct FuzzTarget: Sendable {
  /// One word; also the directory of its inputs.
  package let name: String
  /// What is fuzzed, in a line.
  package let summary: String
  /// Bytes of the longest input that the fuzzer tries.
  package let byteLimit: Int
  /// Its part of a run over all targets, as a weight: what is slow has less.
  package let weight: Int
  /// Right inputs, and ones that come close, for the fuzzer to begin with.
  package let seeds: @Sendable () throws -> [[UInt8]]
  private let body: @Sendable (UnsafeRawBufferPointer) throws -> Void

  init(
    _ name: String, _ summary: String, byteLimit: Int = 4096, weight: Int,
    seeds: @escaping @Sendable () throws -> [[UInt8]],
    body: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void
  ) {
    self.name = name
    self.summary = summary
    self.byteLimit = byteLimit
    self.weight = weight
    self.seeds = seeds
    self.body = body
  }

  package static let all: [FuzzTarget] = [
    .segment, .checkpoint, .chunk, .directory, .writes, .json, .update, .path, .words, .query, .url,
    .pushID, .verbs, .request, .wire, .sync, .records, .poll, .token, .rules, .ruleTests,
  ]

  package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }

  /// Runs one input.
  ///
  /// - Parameter secondsMax: the processor seconds that it may take.
  /// - Returns: the property that is violated, or nil. Memory and the end of the process are for the caller to
  ///   watch.
  package func problem(
    with input: UnsafeRawBufferPointer, secondsMax: Double = 1
  ) -> String? {
    let started = Self.processorSeconds
    do {
      try body(input)
    } catch let finding as FuzzFinding {
      return finding.sentence
    } catch {
      return "\(error), which was not caught"
    }
    let seconds = Self.processorSeconds - started
    return seconds > secondsMax ? "it takes \(seconds) s of processor time" : nil
  }

  /// Runs one input.
  package func problem(with input: [UInt8], secondsMax: Double = 1) -> String? {
    input.withUnsafeBytes { problem(with: $0, secondsMax: secondsMax) }
  }

  /// Of this thread: other processes do not count.
  private static var processorSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }
}

/// A promise that an input broke.
struct FuzzFinding: Error {
  let sentence: String

  init(_ sentence: String) { self.sentence = sentence }
}

/// - Throws: `FuzzFinding` if the condition does not hold.
func require(_ condition: Bool, _ sentence: @autoclosure () -> String) throws {
  if !condition { throw FuzzFinding(sentence()) }
}

/// - Returns: the value; nil if it is refused, as any input may be.
func attempt<Value, Failure: Error>(_ body: () throws(Failure) -> Value) -> Value? {
  do {
    return try body()
  } catch {
    return nil
  }
}

import DendroCrashHarness
import Foundation

/// A process with mutants, from its start to its end.
struct PlantedProcess {
  let end: ChildProcess.End
  let said: String
  /// For how many seconds it had said nothing when it was killed; nil if it was not.
  let silence: Int?
  let seconds: Double

  /// Runs a program.
  ///
  /// - Parameters:
  ///   - planted: the names of the mutants, with commas between them.
  ///   - timeout: after so many seconds without output it is killed.
  init(
    _ executable: String, _ arguments: [String], planted: String, timeout: Int,
    joinsErrors: Bool = false
  ) throws(ChildProcess.StartError) {
    setenv("DENDRO_PLANTED", planted, 1)
    // A backtrace takes longer than everything before it.
    setenv("SWIFT_BACKTRACE", "enable=no", 1)
    let started = ContinuousClock.now
    let child = try ChildProcess(executable, arguments, joinsErrors: joinsErrors)
    var knownCount = 0
    var lastNews = ContinuousClock.now
    var isHung = false
    while !child.isComplete {
      usleep(5000)
      let count = child.said.count
      if count != knownCount { (knownCount, lastNews) = (count, .now) }
      if ContinuousClock.now - lastNews > .seconds(timeout) || Interruption.isRequested {
        isHung = !Interruption.isRequested
        child.kill()
        break
      }
    }
    let (end, said) = child.wait()
    self.end = end
    self.said = String(decoding: said, as: UTF8.self)
    silence = isHung ? timeout : nil
    seconds = (ContinuousClock.now - started).seconds
  }
}

import DendroCrashHarness
import Foundation
import DendroFuzzTargets

/// The kept inputs of a target, run by a process of their own. If one of them traps, another process
/// continues after it.
enum KeptInputs {
  static let subcommand = "kept-inputs"

  struct Found {
    var count = 0
    /// Without an input if they cannot be read.
    var problems: [(input: String?, problem: String)] = []
  }

  // MARK: In the child

  /// Says the name of each input before it is run, and then what is wrong with it.
  static func run(_ arguments: [String]) -> Int32 {
    guard let target = arguments.first.flatMap(FuzzTarget.named) else { return 64 }
    func say(_ line: String) {
      let line = line.split(separator: "\n").joined(separator: " ")
      FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
    let corpus = Corpus(of: target)
    do {
      let names = try corpus.names().sorted()
      for name in names where arguments.count < 2 || name > arguments[1] {
        say("input \(name)")
        if let problem = target.problem(with: try corpus.input(name)) { say("failed \(problem)") }
      }
    } catch {
      say("unreadable \(error)")
    }
    return 0
  }

  // MARK: In the parent

  static func run(_ target: FuzzTarget) throws -> Found {
    var found = Found()
    var last: String?
    while !Interruption.isRequested {
      let child = try ChildProcess(
        ChildProcess.ownExecutable, [subcommand, target.name] + (last.map { [$0] } ?? []),
        joinsErrors: true)
      let (end, said) = child.wait()
      if Interruption.explains(end) { break }
      let count = found.count
      for line in String(decoding: said, as: UTF8.self).split(separator: "\n") {
        let text = String(line.drop { $0 != " " }.dropFirst())
        switch line.prefix(while: { $0 != " " }) {
        case "input": (last, found.count) = (text, found.count + 1)
        case "failed": found.problems.append((last, text))
        case "unreadable": found.problems.append((nil, "its inputs cannot be read: \(text)"))
        default: break  // The last words of a process that ends.
        }
      }
      if end == .exit(0) { break }
      found.problems.append((last, "the process ended with \(end)"))
      // If none was begun the next would end as well.
      if found.count == count { break }
    }
    return found
  }
}

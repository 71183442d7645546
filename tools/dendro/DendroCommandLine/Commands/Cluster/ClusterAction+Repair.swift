import Dendro
import DendroCluster

extension ClusterAction {
  static let restore = Self(
    name: "restore", words: ["DIRECTORY"], options: ["dry-run"],
    run: { arguments, address in
      let repair = try opened(arguments, address)
      defer { repair.close() }
      let isRehearsal = arguments.has(.dryRun)
      let question = try question(of: repair, arguments)
      if !isRehearsal {
        let progress = RestoringProgress(question)
        do throws(RepairFailure) {
          _ = try repair.restore { progress.show($0, trouble: $1) }
        } catch {
          throw Failure(error).naming([arguments.positional[1] + "/data"])
        }
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object(
            question.members(of: repair, arguments) + [
              ("lost", question.obstacle == nil ? .count(question.lost?.count ?? 0) : .null),
              ("obstacle", .text(question.obstacle)), ("restored", .bool(!isRehearsal)),
            ]
          ).text)
      } else if isRehearsal {
        try terminal.report(
          "\(question.summary(of: repair, arguments)); "
            + (question.obstacle.map { "they cannot be put there: \($0)" }
              ?? "they would be put there again"))
      } else {
        try terminal.report("\(repair.namespace.printable): \(question.restored)")
      }
      if !arguments.wantsJSON, let loss = question.loss { try terminal.report(loss) }
      try terminal.flush()
      return isRehearsal && question.obstacle != nil ? .problem : .success
    })

  static let acceptLoss = Self(
    name: "accept-loss", words: ["DIRECTORY"], options: ["dry-run"],
    run: { arguments, address in
      let repair = try opened(arguments, address)
      defer { repair.close() }
      let question = try question(of: repair, arguments)
      var place: String?
      if !arguments.has(.dryRun) {
        do throws(RepairFailure) {
          place = try repair.acceptLoss()
        } catch {
          throw Failure(error).naming([arguments.positional[1] + "/data"])
        }
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object(
            question.members(of: repair, arguments) + [("setAside", .text(place))]
          ).text)
      } else {
        try terminal.report(question.summary(of: repair, arguments))
        if let place {
          try terminal.report("they are given up, and the data is in \(place.printable) now")
          if let first = question.writes?.lowerBound {
            try terminal.report(
              "'dendro log \(place.printable) --since \(first)' shows them, as far as the disk had them"
            )
          }
        } else {
          try terminal.report("they would be given up, and the data moved aside")
        }
      }
      try terminal.flush()
      return .success
    })

  private static func opened(_ arguments: Arguments, _ address: String) throws -> ClusterRepair {
    let directory = try Arguments.absolutePath(arguments.positional[1], "DIRECTORY")
    do throws(RepairFailure) {
      return try ClusterRepair(directory, address: address)
    } catch {
      throw Failure(error).naming([arguments.positional[1] + "/data"])
    }
  }

  private static func question(
    of repair: ClusterRepair, _ arguments: Arguments
  ) throws -> ClusterRepair.Question {
    guard let question = repair.question else {
      throw Failure(
        .problem,
        "no write is in question: PostgreSQL has all that \(arguments.positional[1]) has of \(repair.namespace)"
      )
    }
    return question
  }
}

extension ClusterRepair.Question {
  /// The numbers of the writes that only the directory has.
  private func numbers(of writes: ClosedRange<UInt64>) -> String {
    let first = Format.count(writes.lowerBound)
    return writes.count == 1 ? first : "\(first) to \(Format.count(writes.upperBound))"
  }

  /// What a restore has done.
  fileprivate var restored: String {
    guard let writes else { return "" }
    let verb = writes.count == 1 ? "is" : "are"
    return
      "\(Format.count(writes.count, "write")), \(numbers(of: writes)), \(verb) in PostgreSQL again"
  }

  /// What this directory cannot give back; nil if there is nothing.
  fileprivate var loss: String? {
    lost.map {
      """
      PostgreSQL had \(Format.count($0.count, "more write")), \(numbers(of: $0)), which this directory has lost as well; another \
      server's directory may have them
      """
    }
  }

  fileprivate func summary(of repair: ClusterRepair, _ arguments: Arguments) -> String {
    let directory = arguments.positional[1].printable
    let lacking =
      writes.map { "\(Format.count($0.count, "write")) that it lacks, \(numbers(of: $0))" }
      ?? "other writes than it, up to \(Format.count(lastLSN))"
    return
      "\(repair.namespace.printable): PostgreSQL's log ends with write \(Format.count(sharedLSN)), and \(directory) has \(lacking)"
  }

  fileprivate func members(
    of repair: ClusterRepair, _ arguments: Arguments
  ) -> [(String, JSONValue)] {
    [
      ("namespace", .string(repair.namespace)), ("directory", .string(arguments.positional[1])),
      ("sharedLSN", .unsigned(sharedLSN)), ("lastLSN", .unsigned(lastLSN)),
      ("first", writes.map { .unsigned($0.lowerBound) } ?? .null),
      ("writes", writes.map { .count($0.count) } ?? .null),
    ]
  }
}

extension Failure {
  init(_ failure: RepairFailure) {
    switch failure {
    case .refused(let reason): self.init(.problem, reason)
    case .failed(let error) where error.cause != nil: self.init(describing: error)
    case .failed(let error) where error.code == .unavailable:
      self.init(.unavailable, error.message)
    case .failed(let error): self.init(.problem, error.message)
    }
  }
}

/// Says how far it is, and what it waits for. Any thread may call it.
private final class RestoringProgress: Sendable {
  private let first: UInt64
  private let last: UInt64

  init(_ question: ClusterRepair.Question) {
    first = question.sharedLSN
    last = question.lastLSN
  }

  func show(_ lsn: UInt64, trouble: String?) {
    Terminal.note(
      trouble.map { "dendro: behind write \(lsn): \($0); trying again" }
        ?? "dendro: \(Format.count(lsn - first)) of \(Format.count(last - first, "write"))")
  }
}

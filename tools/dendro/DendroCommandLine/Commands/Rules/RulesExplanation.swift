import DendroEngine
import DendroRules
import DendroTree

/// One run of `rules explain`.
struct RulesExplanation {
  private let arguments: Arguments

  init(_ arguments: Arguments) { self.arguments = arguments }

  func run() throws -> ExitCode {
    guard let file = arguments.value("rules") else { throw Failure.usage("--rules is missing") }
    let rules = try RulesArguments.rules(in: file)
    let now = try arguments.integer("now", in: 0...Int64(1) << 52) ?? Platform.now()
    let auth = try self.auth()
    let verdict: RuleVerdict
    switch (arguments.value("read"), arguments.value("write")) {
    case (let path?, nil):
      guard arguments.positional.count == 2 else { throw Failure.usage("--read takes no JSON") }
      let request = try self.request { () throws(RuleRequestError) in
        try RuleRequest(reading: path, auth: auth, now: now)
      }
      verdict = rules.decide(request, data: try root(), details: .trace)
    case (nil, let path?):
      guard arguments.positional.count == 3 else {
        throw Failure.usage("the JSON that --write writes is missing")
      }
      let request = try self.request { () throws(RuleRequestError) in
        try RuleRequest(setting: path, auth: auth, now: now)
      }
      let old = try root()
      verdict = rules.decide(
        request, data: old, newData: try written(path, over: old, now: now), details: .trace)
    default: throw Failure.usage("one of --read and --write is needed")
    }
    let terminal = try Terminal(color: arguments.value("color"))
    if arguments.wantsJSON {
      try terminal.print(verdict.json)
    } else {
      try terminal.print(lines: verdict.trace?.description ?? "")
    }
    try terminal.flush()
    return verdict.isAllowed ? .success : .problem
  }

  private func auth() throws -> RuleAuth? {
    guard let claims = arguments.value("as") else { return nil }
    do throws(RuleTextError) {
      return try RuleAuth.parsed(claims)
    } catch {
      throw Failure.usage("--as: \(error)")
    }
  }

  private func request(
    _ make: () throws(RuleRequestError) -> RuleRequest
  ) throws -> RuleRequest {
    do throws(RuleRequestError) {
      return try make()
    } catch {
      throw Failure.usage(error.message)
    }
  }

  private func root() throws -> Node {
    let path = try Arguments.absolutePath(arguments.positional[1], "DIRECTORY")
    do {
      return try ReadState.states(of: path, at: [nil])[0].root
    } catch {
      var failure = Failure(describing: error)
      // 1 says that the request is denied.
      if failure.code == .problem { failure.code = .unavailable }
      throw failure
    }
  }

  /// The root after the write.
  private func written(_ path: String, over root: Node, now: Int64) throws -> Node {
    do throws(JSONTreeError) {
      return try JSONTree(root).setting(path, to: arguments.positional[2], now: now).node
    } catch {
      throw Failure(.badInput, error.message)
    }
  }
}

import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Dispatch

// Whether the server works.

extension RESTCall {
  /// Whether the databases can be read and take writes, and their last ones. It is for everybody, what they have for those
  /// who may see that.
  func answerStatus() {
    guard request.method == .get || request.method == .head else {
      return refuse(RESTError(405, "The status is read with GET."))
    }
    let full = service.namespaces.all.filter { namespace in
      if case .diskFull? = namespace.engine.writeRefusal { true } else { false }
    }
    let opens = service.namespaces.hasMissing
    if full.isEmpty, !opens { return finishStatus() }
    let looked = DispatchGroup()
    if opens {
      service.workers.async(group: looked) { service.namespaces.openMissing() }
      // PostgreSQL may take long to refuse, and who asks for the status waits for a moment only.
      service.workers.asyncAfter(deadline: .now() + 1) {
        finishStatus(isOpening: service.namespaces.hasMissing)
      }
    }
    // A write looks whether there is room by now, and may wait for that. This one changes nothing.
    for namespace in full {
      looked.enter()
      service.workers.async {
        namespace.engine.submit(Draft(.update(.root, []))) { _ in looked.leave() }
      }
    }
    looked.notify(queue: service.workers) { finishStatus() }
  }

  /// Gives the answer, if there is none yet.
  ///
  /// - Parameter isOpening: whether databases are still being opened.
  private func finishStatus(isOpening: Bool = false) {
    let all = states.sorted { $0.name < $1.name }
    let failure = all.lazy.compactMap(\.failure).first
    let shown = service.mayInspect(identity) ? all : []
    let databases = shown.map { state in
      let error = state.failure ?? state.trouble
      let members = state.members + (error.map { Self.members(of: $0.message) } ?? [])
      return "\"\(state.name)\":{\(members.joined(separator: ","))}"
    }
    let trouble = all.lazy.compactMap(\.trouble).first
    let fails = failure != nil || isOpening
    let state = fails ? "failing" : trouble != nil ? "degraded" : "ok"
    // What the files are called is not for everybody.
    let error =
      failure.map { RESTError($0 as any Error).text }
      ?? (isOpening ? "Databases are being opened." : nil)
      ?? trouble.map { _ in "This server has no contact with the others." }
    let members =
      ["\"status\":\"\(state)\""] + (error.map { Self.members(of: $0) } ?? [])
      + ["\"databases\":{\(databases.joined(separator: ","))}"]
    var answer = RESTAnswer(text: "{\(members.joined(separator: ","))}", request)
    if fails { answer.status = 503 }
    exchange.finish(answer)
  }

  private struct State {
    let name: String
    let members: [String]
    /// Why it cannot be read, or takes no writes.
    let failure: DatabaseError?
    /// Why it takes no writes here for the time being, and can be read.
    var trouble: DatabaseError?
  }

  /// Of the databases that are open, and of those that cannot be opened.
  private var states: [State] {
    let open = service.namespaces.all.map { namespace in
      State(
        name: namespace.name, members: Self.figures(of: namespace),
        failure: Self.refusal(by: namespace), trouble: Self.trouble(of: namespace))
    }
    return open
      + service.namespaces.failures.map { name, error in
        State(name: name, members: [], failure: error)
      }
  }

  private static func figures(of namespace: Namespace) -> [String] {
    let statistics = namespace.engine.statistics()
    let (last, durable) = (statistics.lastLSN.rawValue, statistics.durableLSN.rawValue)
    var members = [
      "\"lastLSN\":\(last)", "\"durableLSN\":\(durable)", "\"lag\":\(last - min(last, durable))",
    ]
    // Last writes of clients that wait for room on the disk.
    if let count = namespace.journal?.refusedCount, count > 0 {
      members.append("\"waitingLastWrites\":\(count)")
    }
    if let status = namespace.peerStatus { members.append("\"cluster\":\(status.json)") }
    return members
  }

  /// Why a database takes no writes, or what of it cannot be read. One that is open for reading only, or in which another
  /// server leads, does what it is to do; one that waits for PostgreSQL can be read meanwhile.
  private static func refusal(by namespace: Namespace) -> DatabaseError? {
    let engine = namespace.engine
    return switch engine.writeRefusal {
    case nil, .readOnly: engine.damage.map { DatabaseError(served: $0) }
    case .unavailable where namespace.peerStatus.map { $0.role != .stopped } ?? false:
      engine.damage.map { DatabaseError(served: $0) }
    case let error?: DatabaseError(served: error)
    }
  }

  /// Why a database of several servers takes no writes for the time being.
  private static func trouble(of namespace: Namespace) -> DatabaseError? {
    guard let status = namespace.peerStatus, status.role != .stopped else { return nil }
    if status.role == .leader, case .unavailable? = namespace.engine.writeRefusal {
      return namespace.engine.writeRefusal.map { DatabaseError(served: $0) }
    }
    return status.trouble.map { DatabaseError(served: .unavailable($0)) }
  }

  private static func members(of error: String) -> [String] {
    var text = AnswerText("\"error\":")
    text.append(Node(.string(error)), JSONStyle())
    return [String(decoding: text.rest(), as: UTF8.self)]
  }
}

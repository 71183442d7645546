import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Dispatch

// Whether the server works.

extension RESTCall {
  /// Whether the databases that are open take writes, and their last ones. It is for everybody, what they have for
  /// those who may see that.
  func answerStatus() {
    guard request.method == .get || request.method == .head else {
      return refuse(RESTError(405, "The status is read with GET."))
    }
    let full = service.namespaces.all.filter { namespace in
      if case .diskFull? = namespace.engine.writeRefusal { true } else { false }
    }
    if full.isEmpty { return finishStatus() }
    // A write looks whether there is room by now, and may wait for that. This one changes nothing.
    let looked = DispatchGroup()
    for namespace in full {
      looked.enter()
      service.workers.async {
        namespace.engine.submit(Draft(.update(.root, []))) { _ in looked.leave() }
      }
    }
    looked.notify(queue: service.workers) { finishStatus() }
  }

  private func finishStatus() {
    let all = service.namespaces.all.sorted { $0.name < $1.name }
      .map { namespace in (namespace: namespace, refusal: Self.refusal(by: namespace.engine)) }
    let failure = all.lazy.compactMap(\.refusal).first
    let shown = service.mayInspect(identity) ? all : []
    let databases = shown.map { namespace, refusal in
      let statistics = namespace.engine.statistics()
      let (last, durable) = (statistics.lastLSN.rawValue, statistics.durableLSN.rawValue)
      return "\"\(namespace.name)\":{\"lastLSN\":\(last),\"durableLSN\":\(durable),"
        + "\"lag\":\(last - min(last, durable))\(Self.waiting(namespace))\(Self.member(refusal))}"
    }
    let state = failure == nil ? "ok" : "failing"
    var answer = RESTAnswer(
      text: "{\"status\":\"\(state)\"\(Self.member(failure)),"
        + "\"databases\":{\(databases.joined(separator: ","))}}", request)
    if failure != nil { answer.status = 503 }
    exchange.finish(answer)
  }

  /// How many last writes of clients wait for room on the disk, if there are any.
  private static func waiting(_ namespace: Namespace) -> String {
    guard let count = namespace.journal?.refusedCount, count > 0 else { return "" }
    return ",\"waitingLastWrites\":\(count)"
  }

  /// Why a database takes no writes. One that is open for reading only does what it is to do.
  private static func refusal(by engine: Engine) -> RESTError? {
    switch engine.writeRefusal {
    case nil, .readOnly: nil
    case let error?: RESTError(error)
    }
  }

  private static func member(_ error: RESTError?) -> String {
    guard let error else { return "" }
    var text = AnswerText(",\"error\":")
    text.append(Node(.string(error.text)), JSONStyle())
    return String(decoding: text.rest(), as: UTF8.self)
  }
}

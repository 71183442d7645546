import Dendro
import DendroProtocol
import Dispatch
import Synchronization

/// A request for `/.leader`: whether this server leads in a database that several servers have. What passes clients on to
/// servers asks it of each of them, without a credential.
struct LeaderCall: Sendable {
  static let path = "/.leader"

  let exchange: Exchange
  let service: RESTService
  /// Nil for the database of requests without a name.
  let namespace: String?

  init(_ exchange: Exchange, _ target: RequestTarget, _ service: RESTService) throws(RESTError) {
    guard exchange.method == "GET" || exchange.method == "HEAD" else {
      throw RESTError(405, "Who leads is read with GET.")
    }
    guard service.namespaces.havePeers else {
      throw RESTError(404, "No other server has the databases of this one.")
    }
    self.exchange = exchange
    self.service = service
    namespace = try RESTRequest.namespace(target, exchange.headers)
  }

  func perform() {
    exchange.asksForState.store(true, ordering: .relaxed)
    service.note(namespace, exchange)
    if let open = service.namespaces.open(namespace), open.namespace.isPrepared {
      return answer(open)
    }
    service.workers.async {
      do {
        let lease = try service.namespaces.namespace(namespace, makesNew: false)
        // Clients of other servers may come, though none does here.
        service.prepare(lease.namespace)
        answer(lease)
      } catch {
        var answer = RESTAnswer(RESTError(error))
        // Whatever the reason is, this server does not lead.
        if answer.status >= 500 { answer.status = 503 }
        exchange.finish(answer)
      }
    }
  }

  private func answer(_ lease: NamespaceLease) {
    exchange.lease = lease
    guard let status = lease.namespace.peerStatus else {
      return exchange.finish(RESTAnswer(.notFound))
    }
    let leads = lease.namespace.leads
    let text = status.publicJSON(takesWrites: leads) + "\n"
    var answer = RESTAnswer(page: Array(text.utf8), type: "application/json; charset=utf-8")
    if !leads { answer.status = 503 }
    exchange.finish(answer)
  }
}

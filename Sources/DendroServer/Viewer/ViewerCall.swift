import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree

/// One request of the viewer's page.
struct ViewerCall: Sendable {
  let exchange: Exchange
  let target: RequestTarget
  let service: RESTService
  let viewer: ViewerService

  func perform() {
    if RulesCall.isMeant(by: target.path) {
      return RulesCall(exchange: exchange, target: target, service: service).perform()
    }
    guard exchange.method == "GET" || exchange.method == "HEAD" else {
      return refuse(RESTError(405, "The viewer is read with GET."))
    }
    if let answer = ViewerService.file(target) { return exchange.finish(answer) }
    let authentication: Authentication
    let name: String?
    do throws(RESTError) {
      authentication = try service.authenticator.authentication(
        of: Credentials(target, exchange.headers))
      name = try RESTRequest.namespace(target, exchange.headers)
    } catch {
      return refuse(error)
    }
    if target.path != "/.viewer/namespaces.json" { service.note(name, exchange) }
    let identity = authentication.identity
    service.workers.async {
      if target.path == "/.viewer/namespaces.json" { return answerNames(identity) }
      do {
        let lease = try service.namespace(name, for: identity)
        exchange.lease = lease
        let namespace = lease.namespace
        switch target.path {
        case "/.viewer/log.json": answerLog(of: namespace, identity)
        case "/.viewer/past.json": answerPast(of: namespace, identity)
        default: refuse(.notFound)
        }
      } catch {
        refuse(RESTError(error))
      }
    }
  }

  private func refuse(_ error: RESTError) { exchange.finish(RESTAnswer(error)) }

  private func finish(_ text: String) { finish(Array(text.utf8)) }

  private func finish(_ bytes: [UInt8]) {
    exchange.finish(RESTAnswer(page: bytes, type: "application/json; charset=utf-8"))
  }

  private func allows(_ path: Path, _ identity: Identity, _ namespace: Namespace) -> Bool {
    service.rights(in: namespace).verdict(
      reading: path, nil, by: identity, on: namespace.engine.pin()
    ).decision == .allow
  }

  /// Their names are for those who may read everything.
  private func answerNames(_ identity: Identity) {
    let names = service.mayInspect(identity) ? service.namespaces.names : []
    finish("{\"names\":[\(names.map { "\"\($0)\"" }.joined(separator: ","))]}")
  }

  private func answerLog(of namespace: Namespace, _ identity: Identity) {
    guard allows(.root, identity, namespace) else { return refuse(.permissionDenied) }
    let limit = min(1000, max(1, target["limit"].flatMap { Int($0) } ?? 200))
    Task(executorPreference: WorkerExecutor(service.workers)) {
      do throws(EngineError) {
        finish(try await ViewerService.log(of: namespace.engine, limit: limit))
      } catch {
        refuse(RESTError(error))
      }
    }
  }

  private func answerPast(of namespace: Namespace, _ identity: Identity) {
    guard let path = target["path"].flatMap({ try? Path(parsing: $0) }),
      let lsn = target["at"].flatMap({ UInt64($0) })
    else { return refuse(.badRequest("path and at say what to show, and after which write")) }
    guard allows(path, identity, namespace) else { return refuse(.permissionDenied) }
    do throws(EngineError) {
      let past = try viewer.state(of: namespace, at: LogSequenceNumber(lsn))
      // Who may read it now may not have been allowed to then.
      let verdict = service.rights(in: namespace).verdict(
        reading: path, nil, by: identity, on: PinnedHead(past, inPlaceOf: namespace.engine.pin()))
      guard verdict.decision == .allow else { return refuse(.permissionDenied) }
      let node = past.node(at: path)
      if target["whole"] == nil {
        return finish(Array("{\"data\":".utf8) + ShallowText.whole(node) + [UInt8(ascii: "}")])
      }
      var text = AnswerText("{\"data\":")
      text.append(node, JSONStyle(.export))
      text.append("}")
      exchange.finish(RESTAnswer(page: text, type: "application/json; charset=utf-8"))
    } catch {
      refuse(RESTError(error))
    }
  }
}

import Dendro
import DendroEngine
import DendroProtocol
import DendroTree

// Writes that another server makes.

extension RESTCall {
  /// Has the server that leads judge and make a write, and answers once this server shows it.
  func passOn(
    _ write: EncodedWrite, _ draft: Draft, at place: Path, key: String?, in namespace: Namespace
  ) {
    let etag = request.conditions.ifMatch
    let showsResult = etag != nil || needsResult(draft)
    if showsData(draft), refusesReading(place, in: namespace) { return }
    var passed = PassedOnWrite(identity: identity, path: place)
    passed.alsoReads = showsData(draft)
    passed.wantsTrace = wantsTrace
    var isPriority = false
    if case .priority = request.resource { isPriority = true }
    passed.condition = etag.map {
      PassedOnWrite.Condition(kind: .etag, isPriority: isPriority, value: $0)
    }
    let body = repeatedBody
    let end = acknowledged(in: namespace) { (result: (outcome: WriteOutcome, data: Node?)) in
      namespace.hub.afterEvents(isShort: false) {
        switch result.outcome {
        case .made:
          guard showsResult else {
            return inTurn(hashesLong(draft), namespace, isWritten: true) {
              exchange.finish(answer(draft, key, body))
            }
          }
          answer(result.data, at: place, isWritten: true, key, in: namespace)
        case .stale: answer(nil, at: place, isWritten: false, key, in: namespace)
        case .denied(let verdict):
          refuse(RESTError(writing: verdict) ?? .permissionDenied, verdict)
        case .failed(let error): refuse(error)
        }
      }
    }
    namespace.pass(write, passed) { outcome, data in end((outcome, data)) }
  }

  /// - Parameter data: right behind the write; nil: that of now.
  private func answer(
    _ data: Node?, at place: Path, isWritten: Bool, _ key: String?, in namespace: Namespace
  ) {
    let node: Node
    do throws(EngineError) {
      node = if let data { data.node(at: place) } else { try namespace.engine.view(at: place) }
    } catch {
      return refuse(RESTError(error))
    }
    let visible = shown(node)
    let hashes = !isWritten || request.conditions.wantsETag
    inTurn(hashes && TreeHash.takesLong(visible), namespace, isWritten: isWritten) {
      exchange.finish(answer(visible, isWritten: isWritten, key))
    }
  }
}

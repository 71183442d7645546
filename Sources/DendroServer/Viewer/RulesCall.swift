import DendroProtocol
import DendroRules
import DendroTree
import Dispatch

/// One request of the viewer's page of rules: what a text is worth that need not be in force.
///
/// | target | body | answer |
/// | --- | --- | --- |
/// | `/.viewer/rules.json` | the text of rules | what the compiler says: `RuleDiagnosis` |
/// | `/.viewer/explain.json` | rules and a request: `RuleTrial` | the verdict about the data of this moment, or what the compiler says |
///
/// A trace shows data, so both are for those who may see everything.
struct RulesCall: Sendable {
  let exchange: Exchange
  let target: RequestTarget
  let service: RESTService

  /// A text of rules at its limit, each character escaped, and a value.
  private static let bodyByteLimit = 2 << 20

  /// Whether a request with this path is one.
  static func isMeant(by path: String) -> Bool {
    path == "/.viewer/rules.json" || path == "/.viewer/explain.json"
  }

  func perform() {
    guard exchange.method == "POST" else {
      return refuse(RESTError(405, "Rules are judged with POST."))
    }
    let name: String?
    do throws(RESTError) {
      let authentication = try service.authenticator.authentication(
        of: Credentials(target, exchange.headers))
      guard service.mayInspect(authentication.identity) else { throw .permissionDenied }
      guard exchange.body.count <= Self.bodyByteLimit else { throw .tooLarge }
      name = try RESTRequest.namespace(target, exchange.headers)
    } catch {
      return refuse(error)
    }
    service.note(name, exchange)
    service.workers.async {
      if target.path == "/.viewer/rules.json" { check() } else { explain(in: name) }
    }
  }

  private func refuse(_ error: RESTError) { exchange.finish(RESTAnswer(error)) }

  private func finish(_ json: String) {
    exchange.finish(RESTAnswer(page: Array(json.utf8), type: "application/json; charset=utf-8"))
  }

  private func check() {
    guard let text = String(validating: exchange.body, as: UTF8.self) else {
      return refuse(.badRequest("The rules are not UTF-8."))
    }
    finish(RuleDiagnosis(text).json)
  }

  private func explain(in name: String?) {
    do {
      let trial = try RuleTrial(exchange.body)
      let diagnosis = RuleDiagnosis(trial.rules)
      guard case .success(let rules) = diagnosis.result else { return finish(diagnosis.json) }
      let verdict = try trial.verdict(by: rules, about: root(of: name), now: systemMilliseconds())
      finish(verdict.json)
    } catch let error as RuleTextError {
      refuse(.badRequest(error.message))
    } catch {
      refuse(RESTError(error))
    }
  }

  /// The data of a namespace, which is not made.
  private func root(of name: String?) throws -> Node {
    do {
      let lease = try service.namespaces.namespace(name, makesNew: false)
      exchange.lease = lease
      return try lease.namespace.root()
    } catch NamespaceError.unknown where service.namespaces.makesNamespaces {
      return .empty
    }
  }
}

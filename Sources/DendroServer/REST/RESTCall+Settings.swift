import Dendro
import DendroEngine
import DendroProtocol
import DendroRules
import DendroStorage
import Dispatch

// Settings of a database, its rules among them.

extension RESTCall {
  func answerSettings(_ name: String, _ namespace: Namespace) {
    guard identity.isAdministrator,
      service.authorizer.allows(.settings, in: namespace.name, identity)
    else { return refuse(.permissionDenied) }
    guard NamespaceSettings.names.contains(name) else { return refuse(.notFound) }
    let isRules = name == NamespaceSettings.rulesName
    switch request.method {
    case .get, .head:
      isRules
        ? answerRules(namespace) : answer(text: namespace.settings[name] ?? defaultValue(name))
    case .put:
      guard !exchange.body.isEmpty else { return refuse(.badRequest("Error: No data supplied.")) }
      guard let text = String(validating: exchange.body, as: UTF8.self) else {
        return refuse(.badRequest("Invalid data; it is not UTF-8."))
      }
      isRules ? putRules(text, namespace) : put(text, as: name, namespace)
    default: refuse(RESTError(405, "A setting is read and written with GET and PUT."))
    }
  }

  private func answerRules(_ namespace: Namespace) {
    let set = service.rights(in: namespace).rules
    let text = set?.text ?? defaultRules
    guard request.isStrict else { return answer(text: text) }
    // What cannot be compiled is shown as it is.
    answer(text: (set == nil ? try? Rules(text) : set?.rules)?.strictText ?? text)
  }

  private func putRules(_ text: String, _ namespace: Namespace) {
    guard service.authorizer.yieldsToRules else {
      return refuse(RESTError(501, "This server decides by its own authorizer, not by rules."))
    }
    if let common = service.commonRules {
      return refuse(
        RESTError(
          409, "The rules of this server come from \(common.name), and hold for all databases."))
    }
    let set = RuleSet(compiling: text)
    if let failure = set.failure { return refuse(.badRequest("\(failure)\n")) }
    if request.isDryRun { return answerOK() }
    if let refusal = namespace.refusalToWrite { return refuse(refusal) }
    service.workers.async {
      // What rules look at is in memory from then on.
      namespace.loadAll()
      let completion = acknowledged(in: namespace) { (error: EngineError?) in
        if let error { return refuse(error, in: namespace) }
        service.workers.async {
          service.reauthorize(namespace)
          answerOK()
        }
      }
      namespace.settings.put(
        text, as: NamespaceSettings.rulesName, rules: set, completion: completion)
    }
  }

  private func put(_ text: String, as name: String, _ namespace: Namespace) {
    if name == NamespaceSettings.writeSizeLimitName, WriteSizeLimit(json: text) == nil {
      return refuse(.badRequest("\(name) must be \(WriteSizeLimit.names), in quotation marks"))
    }
    if request.isDryRun { return answerOK() }
    if let refusal = namespace.refusalToWrite { return refuse(refusal) }
    let completion = acknowledged(in: namespace) { (error: EngineError?) in
      if let error { refuse(error, in: namespace) } else { answerOK() }
    }
    namespace.settings.put(text, as: name, completion: completion)
  }

  private func refuse(_ error: EngineError, in namespace: Namespace) {
    let error = DatabaseError(served: error)
    refuse(namespace.refusal(notLeading: error) ?? RESTError(error))
  }

  private func answerOK() { answer(text: "{\"status\":\"ok\"}") }

  /// What stands for rules as long as there are none.
  private var defaultRules: String {
    let isOpen = service.authorizer.isOpen
    return "{\n  \"rules\": {\n    \".read\": \(isOpen),\n    \".write\": \(isOpen)\n  }\n}\n"
  }

  private func defaultValue(_ name: String) -> String {
    switch name {
    case NamespaceSettings.writeSizeLimitName: "\"\(WriteSizeLimit.large.rawValue)\""
    case "strictTriggerValidation": "false"
    default: "null"
    }
  }
}

/// Server values by the entry of the update that they belong to.
package struct DeferredByEntry {
  private var valuesByPath: [Path: [Draft.Deferred]] = [:]
  private var priorities: [Path: Draft.Deferred.Value] = [:]

  package init(_ deferred: [Draft.Deferred], _ entries: [Write.Entry]) {
    if deferred.isEmpty { return }
    var dataPaths: Set<Path> = []
    for entry in entries {
      if case .set = entry.action { dataPaths.insert(entry.path) }
    }
    for var item in deferred {
      // At most 32 steps down, whatever the number of entries.
      let owner = (0...item.path.count).lazy.map(item.path.prefix).first(
        where: dataPaths.contains)
      if let owner, let relative = item.path.relative(to: owner) {
        item.path = relative
        valuesByPath[owner, default: []].append(item)
      } else if item.isPriority {
        priorities[item.path] = item.value
      }
    }
  }

  package func values(below path: Path) -> [Draft.Deferred] { valuesByPath[path] ?? [] }
  package func priority(at path: Path) -> Draft.Deferred.Value? { priorities[path] }
}

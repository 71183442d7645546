package import DendroEngine
package import DendroTree

extension PackedUpdate {
  /// The same update; nil for other writes, for those that only a draft can hold, and for those that are not
  /// valid.
  package init?(_ write: Write) {
    guard case .update(let base, let entries) = write else { return nil }
    self.init()
    do throws(ValidationError) {
      for entry in entries {
        let path = entry.path.description
        switch entry.action {
        case .set(let node): try set(path, node)
        case .remove: try remove(path)
        case .increment(let delta): try increment(path, by: delta)
        case .setPriority: return nil
        }
      }
      try finish(at: base)
    } catch {
      return nil
    }
  }
}

import DendroTesting
import DendroTree

extension Workload {
  static let tree = Workload(
    "tree",
    "400,000 leaves at posts/<push id>/<field> in the tree alone: sets, reads, views, memory.",
    [Comparison("the tree alone", "sets", [Contestant("dendro") { measureTree($0) }])])
}

private func measureTree(_ turn: Turn) -> Measurement {
  let sets = PostSets(count: turn.scaled(400_000))
  let paths = sets.paths.compactMap { try? Path(parsing: $0) }
  let nodes = sets.values.map { Node(.string($0)) }
  var shuffling = SeededRandomness(seed: 2)
  let shuffled = Array(paths.indices).shuffled(using: &shuffling)

  var measurement = Measurement()
  func measure(_ name: String, _ body: () -> Void) {
    measurement.addRate(name, "a second", count: paths.count, body)
  }
  let before = residentByteCount()
  var root = Node.empty
  measure("sets in order") {
    for index in paths.indices { Sink.take(root.apply(.set(paths[index], nodes[index])).count) }
  }
  let memory = Double(residentByteCount() - before) / Double(paths.count)
  let countedMemory = root.memory().bytesPerLeaf
  measure("reads shuffled") {
    for index in shuffled { Sink.take(root.node(at: paths[index]).isLeaf ? 1 : 0) }
  }
  // Every leaf gets another value of the same size, so every set changes a leaf and no page grows.
  measure("overwriting shuffled") {
    for index in shuffled {
      Sink.take(root.apply(.set(paths[index], nodes[(index + 1) % nodes.count])).count)
    }
  }
  measure("overwriting, a view before each") {
    for index in shuffled {
      let view = root
      Sink.take(root.apply(.set(paths[index], nodes[index])).count)
      Sink.take(view.childCount)
    }
  }
  root = .empty
  measure("sets shuffled") {
    for index in shuffled { Sink.take(root.apply(.set(paths[index], nodes[index])).count) }
  }
  Sink.take(root.childCount)
  measurement.add("memory", "bytes a leaf", memory)
  measurement.add("memory, as the tree counts it", "bytes a leaf", countedMemory)
  return measurement
}

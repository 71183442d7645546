extension Command {
  static let demo = Command(name: "demo", summary: "x", run: { _ in .success })
  static let demoWriter = Command(
    name: "demo-writer", summary: "x", isHidden: true, run: { _ in .success })
}

/// Asks again and again whether a condition holds: as long as a slow machine may need, but not for ever.
///
/// - Returns: nil once it holds; otherwise what is wrong.
package func waitUntil(
  _ condition: () async throws -> Bool, within limit: Duration = .seconds(60)
) async throws -> String? {
  let deadline = ContinuousClock.now + limit
  while try await !condition() {
    guard .now < deadline else { return "it has not happened within \(limit)" }
    try await Task.sleep(for: .milliseconds(3))
  }
  return nil
}
